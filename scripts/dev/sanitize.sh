# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev test-sanitize KIND [TESTS...]: builds the unit tests of the runtime with a sanitizer and runs them.

RUNTIME_TESTS=(RuntimeCApiTests RuntimeCalibrationTests RuntimeCliTests RuntimeCollectivesTests RuntimeCoreTests RuntimeIoTests
  RuntimeKernelsTests TextTests)

command_test-sanitize() {
  local kind=${1:-} targets
  shift $(($# > 0))
  case "$kind" in
    thread) sanitize_threads ;;
    *) fail "unknown sanitizer '$kind'; supported: thread" ;;
  esac
  targets=("$@")
  [ $# -gt 0 ] || targets=("${RUNTIME_TESTS[@]}")
  command_build "${targets[@]}"
  run_lit "${targets[@]/#/$(build_folder)/test/unit/}"
}

# Archer tells ThreadSanitizer what OpenMP orders, as libomp is not instrumented. Nor are the libraries of the system: what they do is
# theirs.
sanitize_threads() {
  PRESET=tsan
  export OMP_TOOL_LIBRARIES=/usr/lib/llvm-22/lib/libarcher.so
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1:allocator_may_return_null=1:${TSAN_OPTIONS:-}"
}
