# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev lint, format and docs.

# sources PATTERNS...: files of the project, committed or new, that match.
sources() {
  git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
  done
}

need_tool() {
  [ -x "$(command -v "$1")" ] || install_missing "$1"
}

command_lint() {
  local status=0
  if [ "${1:-}" = --tidy ]; then
    shift
    run_tidy "$@"
    return
  fi
  need_tool clang-format-22
  sources ':!test/fuzz/corpus' | xargs -d '\n' python3 scripts/dev/lint.py || status=1
  local files
  files=$(unformatted || true) # what finds them fails where there are some
  if [ -n "$files" ]; then
    sed "s|\$|:1: not as .clang-format says; './dev format' mends it|" <<<"$files"
    status=1
  fi
  return $status
}

# unformatted: the C++ files that clang-format would change.
unformatted() {
  sources '*.cpp' '*.cu' '*.h' '*.c' | xargs -r -d '\n' clang-format-22 --dry-run --Werror 2>&1 |
    sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u
}

run_tidy() {
  [ $# -gt 0 ] || fail "lint --tidy expects the files to check"
  need_tool clang-tidy-22
  command_build all
  clang-tidy-22 -p "$(build_folder)" --quiet "$@"
}

command_format() {
  need_tool clang-format-22
  sources '*.cpp' '*.cu' '*.h' '*.c' | xargs -r -d '\n' clang-format-22 -i
}

command_docs() {
  local venv
  PRESET=release command_build hone hone-run
  venv=$(readlink -f .deps/venv)
  if [ ! -e "$venv/docs-$(hash_of requirements-docs.txt)" ]; then
    logged pip-docs "installing what makes the site" "$venv/bin/pip" install -r requirements-docs.txt
    touch "$venv/docs-$(hash_of requirements-docs.txt)"
  fi
  logged docs "building the site" python scripts/dev/site.py build/site-pages build/docs
  echo "build/docs/index.html"
}
