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

# The tools, or what is named: a target of CMake, or `all`, with tests, benchmarks and kernels of devices.
command_build() {
  local targets=("$@")
  [ $# -gt 0 ] || targets=(tools)
  command_deps
  configure "$PRESET" "$(build_folder)"
  logged "build-$PRESET" "building ($PRESET)" cmake --build "$(build_folder)" --parallel "$JOBS" --target "${targets[@]}"
}

command_clean() {
  rm -rf build build-debug build-asan build-tsan build-fuzz
}

# The main job from end to end on the model in examples/: compile it, look at it, let it write.
command_demo() {
  command_build hone
  local model=examples/python-lm/model.onnx artefact=build/demo/python-lm.hone bin
  bin=$(build_folder)/bin
  mkdir -p build/demo
  if [ ! -e "$artefact" ] || [ "$model" -nt "$artefact" ] || [ "$bin/hone" -nt "$artefact" ]; then
    logged demo-compile "hone compile $model --tokenizer=examples/python-lm/tokenizer.json -o $artefact" \
      "$bin/hone" compile "$model" --tokenizer=examples/python-lm/tokenizer.json -o "$artefact"
  fi
  echo "==> hone run $artefact --prompt 'class Parser:' --repetition-penalty 1.2 --max-new-tokens 120" >&2
  "$bin/hone" run "$artefact" --prompt 'class Parser:' --repetition-penalty 1.2 --max-new-tokens 120
}

# Kernels by themselves, or with `peers` whole models beside other engines.
command_bench() {
  command_build tools hone-kernel-benchmarks
  if [ "${1:-}" = peers ]; then
    shift
    benchmarks/peers/run.py --build "$(build_folder)" "$@"
  elif [ "${1:-}" = quality ]; then
    shift
    benchmarks/quality.py --build "$(build_folder)" "$@"
  else
    "$(build_folder)/benchmarks/hone-kernel-benchmarks" "$@"
  fi
}
