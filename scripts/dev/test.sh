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

run_all_tests() {
  local status=0 suite log summaries=()
  run_lit "$(build_folder)/test" "$(build_folder)/test/unit" || status=1
  for suite in test/differential/run-*.py; do
    [ -e "$suite" ] || continue
    log=$LOGS/$(basename "$suite" .py)-$PRESET.log
    echo "==> $suite" >&2
    python "$suite" --build "$(build_folder)" --jobs "$JOBS" | tee "$log" || status=1
    summaries+=("$log")
  done
  python scripts/dev/total.py "$LOGS/lit-$PRESET.json" "${summaries[@]}" || status=1
  return $status
}
