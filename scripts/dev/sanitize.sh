# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev test-sanitize KIND [TESTS...]: builds the runtime and its unit tests with a sanitizer and runs what may break it. The
# compiler is that of the release: a build of it with sanitizers takes an hour, and is what `./dev test --preset asan` is for. The
# presets build kernels for some ISAs: threads are the same in all, and loads of tiles are not instrumented.

RUNTIME_TESTS=(RuntimeCApiTests RuntimeCalibrationTests RuntimeCliTests RuntimeCollectivesTests RuntimeCoreTests RuntimeIoTests
  RuntimeKernelsTests SamplingTests SpeculateTests TextTests)
# Fuzz targets of the runtime, whose corpora are replayed.
RUNTIME_CORPORA=(artefact corpus inputs manifest npy npz safetensors text tokenizer)

command_test-sanitize() {
  local kind=${1:-} tests
  shift $(($# > 0))
  tests=("$@")
  [ $# -gt 0 ] || tests=("${RUNTIME_TESTS[@]}")
  case "$kind" in
    thread) sanitize_threads ;;
    address) sanitize_addresses ;;
    *) fail "unknown sanitizer '$kind'; supported: address, thread" ;;
  esac
  command_build "${tests[@]}"
  # lit knows programs of GoogleTest by their folder alone.
  run_lit --filter "$(IFS='|'; echo "${tests[*]}")" "$(build_folder)/test/unit"
  [ "$kind" != address ] || [ $# -gt 0 ] || run_hostile_suites
}

# Archer tells ThreadSanitizer what OpenMP orders, as libomp is not instrumented. Nor are the libraries of the system: what they do is
# theirs.
sanitize_threads() {
  PRESET=tsan
  export OMP_TOOL_LIBRARIES=/usr/lib/llvm-22/lib/libarcher.so
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1:allocator_may_return_null=1:${TSAN_OPTIONS:-}"
}

# UndefinedBehaviorSanitizer comes with it. More memory than there is has to be refused by us, and not by the allocator's abort.
sanitize_addresses() {
  PRESET=asan
  export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS:-}"
  export LSAN_OPTIONS="suppressions=$HONE_SOURCE/scripts/dev/leaks.txt:print_suppressions=0:${LSAN_OPTIONS:-}"
}

# fail_allocations FOLDER: what becomes of memory where there is none, in one thread and in two; FOLDER has the sanitized build.
fail_allocations() {
  local model=examples/python-lm scratch=build/sanitize threads
  rm -rf "$scratch"
  mkdir -p "$scratch"
  logged allocations-model "compiling $model" \
    "$(build_folder)/bin/hone" compile --quiet "$model/model.onnx" --tokenizer="$model/tokenizer.json" -o "$scratch/lm.hone"
  python -c "import numpy; numpy.save('$scratch/tokens.npy', numpy.arange(30))"
  for threads in 1 2; do
    logged "allocations-$threads" "failing allocations, threads: $threads" \
      env OMP_WAIT_POLICY=passive "$1/test/unit/allocation-failures" "$scratch/lm.hone" "$scratch/tokens.npy" "$threads"
  done
}

# Corpora, allocations that fail, and extreme values in every operator, whose generated code is instrumented too.
run_hostile_suites() {
  local name sanitized
  sanitized=$(build_folder)
  command_build hone-call-cases hone_allocation_failures "${RUNTIME_CORPORA[@]/#/fuzz-}"
  for name in "${RUNTIME_CORPORA[@]}"; do
    logged "replay-$name" "replaying test/fuzz/corpus/$name" "$sanitized/test/fuzz/$name" "test/fuzz/corpus/$name"
  done
  PRESET=release
  command_build hone
  fail_allocations "$sanitized"
  python test/differential/run-extremes.py --build "$(build_folder)" --run-build "$sanitized" --jobs "$JOBS"
}
