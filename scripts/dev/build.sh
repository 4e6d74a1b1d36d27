# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev build, demo, bench and clean.

# configure PRESET FOLDER: runs CMake where the folder has not been configured from these presets yet.
configure() {
  local stamp=$2/.configured
  if [ ! -e "$2/build.ninja" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$(configuration)" ]; then
    logged "configure-$1" "configuring ($1)" cmake --preset "$1"
    configuration >"$stamp"
  fi
}

configuration() {
  hash_of CMakePresets.json <(readlink .deps/venv .deps/onnx)
}

command_build() {
  local targets=()
  command_deps
  configure "$PRESET" "$(build_folder)"
  [ $# -eq 0 ] || targets=(--target "$@")
  logged "build-$PRESET" "building ($PRESET)" cmake --build "$(build_folder)" --parallel "$JOBS" "${targets[@]}"
}

command_clean() {
  rm -rf build build-debug build-asan build-fuzz
}

command_bench() {
  command_build
  "$(build_folder)/benchmarks/hone-kernel-benchmarks" "$@"
}
