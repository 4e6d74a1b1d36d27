# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Options, progress and logs of ./dev.

CACHE=${HONE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hone}
LOGS=$HONE_SOURCE/build/logs
PRESET=release
JOBS=$(nproc)
ARGUMENTS=()

fail() {
  echo "dev: $*" >&2
  exit 1
}

parse_options() {
  while [ $# -gt 0 ]; do
    case "$1" in
      --preset | --jobs)
        [ $# -gt 1 ] || fail "option $1 needs a value"
        set_option "$1" "$2"
        shift
        ;;
      --preset=* | --jobs=*) set_option "${1%%=*}" "${1#*=}" ;;
      *) ARGUMENTS+=("$1") ;;
    esac
    shift
  done
}

set_option() {
  case "$1=$2" in
    --preset=release | --preset=debug | --preset=asan | --preset=tsan) PRESET=$2 ;;
    --preset=*) fail "unknown preset '$2'; supported: release, debug, asan, tsan" ;;
    --jobs=[1-9]*) JOBS=$2 ;;
    *) fail "option $1 expects a positive number, but got '$2'" ;;
  esac
}

build_folder() {
  case "$PRESET" in
    release) echo "$HONE_SOURCE/build" ;;
    *) echo "$HONE_SOURCE/build-$PRESET" ;;
  esac
}

# logged NAME WHAT COMMAND...: one progress line; the output goes to build/logs/NAME.log and is shown only where it failed.
logged() {
  local what=$2 log=$LOGS/$1.log start=$SECONDS status=0
  shift 2
  mkdir -p "$LOGS"
  echo "==> $what" >&2
  "$@" >"$log" 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" >&2
    echo "dev: this command failed with status $status; its whole output is in $log" >&2
    echo "dev:   $(printf '%q ' "$@")" >&2
    exit 1
  fi
  echo "    done in $((SECONDS - start)) s" >&2
}

# hash_of FILES...: 12 digits that change with what the files say.
hash_of() {
  cat "$@" | sha256sum | cut -c 1-12
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "installing packages needs root: run './dev deps' as root, or install sudo"
  fi
}
