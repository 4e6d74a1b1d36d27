# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev fuzz [SECONDS] [TARGETS...]: runs the fuzz targets one after the other. New inputs stay in build-fuzz/corpus;
# an input that breaks a target is kept in build-fuzz/findings.

command_fuzz() {
  local seconds=${1:-60} target targets status=0
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "fuzz expects a number of seconds, but got '$seconds'"
  shift $(($# > 0))
  command_deps
  configure fuzz "$HONE_SOURCE/build-fuzz"
  logged build-fuzz "building the fuzz targets" cmake --build --preset fuzz --parallel "$JOBS"
  targets=("$@")
  [ $# -gt 0 ] || mapfile -t targets < <(fuzz_targets)
  for target in "${targets[@]}"; do
    run_fuzzer "$target" "$seconds" || status=1
  done
  return $status
}

fuzz_targets() {
  sed -n 's/^hone_fuzz_target(\([a-z-]*\).*/\1/p' test/fuzz/CMakeLists.txt
}

run_fuzzer() {
  local name=$1 seconds=$2 folder=$HONE_SOURCE/build-fuzz log=$LOGS/fuzz-$1.log
  [ -x "$folder/test/fuzz/$name" ] || fail "no fuzz target '$name' in test/fuzz"
  mkdir -p "$folder/corpus/$name" "$folder/findings"
  echo "==> fuzzing $name for $seconds s" >&2
  # allow_user_poisoning: LLVM's arenas poison in our code and unpoison inside those of MLIR, which are not instrumented.
  if ! ASAN_OPTIONS=allow_user_poisoning=0:allocator_may_return_null=1 "$folder/test/fuzz/$name" \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$folder/findings/$name-" \
    "$folder/corpus/$name" "test/fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    return 1
  fi
  grep -E '^Done|stat::number_of_executed_units' "$log" || tail -n 2 "$log"
}
