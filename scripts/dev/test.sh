# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev test. Three kinds of suites add up to one last line, `N passed, N failed[, N skipped]`:
#   text tests           test/**/*.{mlir,test}, run by lit
#   unit tests           build/test/unit/*Tests (GoogleTest), run by lit case by case
#   differential suites  test/differential/run-*.py, each called with --build FOLDER --jobs N, whose last line of output
#                        is of the same form

command_test() {
  command_build all
  if [ $# -gt 0 ]; then
    run_lit "${@/#test/$(build_folder)/test}"
  else
    run_all_tests
  fi
}

run_lit() {
  local report=$LOGS/lit-$PRESET.json
  rm -f "$report"
  lit -s -v -j "$JOBS" --output "$report" "$@"
}

# run_suite SUITE JOBS: its output is shown when it ends, as others run beside it.
run_suite() {
  local log took status=0 TIMEFORMAT='%0R s, %0U + %0S s of processors'
  log=$LOGS/$(basename "$1" .py)-$PRESET.log
  took=$({ time python "$1" --build "$(build_folder)" --jobs "$2" >"$log" 2>&1; } 2>&1) || status=1
  printf '==> %s: %s\n%s\n' "$1" "$took" "$(cat "$log")"
  return $status
}

# Two suites at a time, each with half of the processors: cases of one often wait for its Python.
run_suites() {
  local status=0 suite running=0 half=$(((JOBS + 1) / 2))
  for suite in "$@"; do
    if [ $running -eq 2 ] || [ $running -eq "$JOBS" ]; then
      wait -n || status=1
      running=$((running - 1))
    fi
    run_suite "$suite" $half &
    running=$((running + 1))
  done
  while [ $running -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
  done
  return $status
}

run_all_tests() {
  local status=0 suites=(test/differential/run-*.py) suite summaries=()
  run_lit "$(build_folder)/test" "$(build_folder)/test/unit" || status=1
  run_suites "${suites[@]}" || status=1
  for suite in "${suites[@]}"; do
    summaries+=("$LOGS/$(basename "$suite" .py)-$PRESET.log")
  done
  python scripts/dev/total.py "$LOGS/lit-$PRESET.json" "${summaries[@]}" || status=1
  return $status
}
