# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev build, demo, bench and clean.

# configure PRESET FOLDER [OPTIONS...]: runs CMake where the folder has not been configured so yet.
configure() {
  local preset=$1 folder=$2 stamp=$2/.configured wanted
  shift 2
  wanted=$(configuration "$@")
  if [ ! -e "$folder/build.ninja" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    logged "configure-$preset" "configuring ($preset)" cmake --preset "$preset" "$@"
    echo "$wanted" >"$stamp"
  fi
}

configuration() {
  hash_of CMakePresets.json <(readlink .deps/venv .deps/onnx; echo "$@")
}

# The highest ISA of runtime/cpu/CMakeLists.txt that this machine runs.
machine_isa() {
  local flags isa=avx2 higher flag
  flags=" $(grep -m 1 '^flags' /proc/cpuinfo) "
  [[ $flags != *" avx_vnni "* ]] || isa=avx_vnni
  for higher in "avx512 avx512f avx512bw avx512cd avx512dq avx512vl" "avx512_vnni avx512_vnni" "avx512_bf16 avx512_bf16" \
    "amx amx_tile amx_int8 amx_bf16"; do
    for flag in ${higher#* }; do
      [[ $flags == *" $flag "* ]] || break 2
    done
    isa=${higher%% *}
  done
  echo "$isa"
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

# The main job from end to end on the model in examples/: compile it, look at it, let it write. A folder that nothing was built in
# gets kernels for this machine's ISA alone; `./dev build` adds the others.
command_demo() {
  local folder options
  folder=$(build_folder)
  command_deps
  options=("-DHONE_KERNEL_ISAS=$(machine_isa)")
  [ ! -e "$folder/build.ninja" ] || [ "$(cat "$folder/.configured")" = "$(configuration "${options[@]}")" ] || options=()
  configure "$PRESET" "$folder" "${options[@]}"
  logged "build-$PRESET" "building ($PRESET)" cmake --build "$folder" --parallel "$JOBS" --target hone
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
  elif [ "${1:-}" = speculation ]; then
    shift
    benchmarks/peers/speculation.py --build "$(build_folder)" "$@"
  elif [ "${1:-}" = quality ]; then
    shift
    benchmarks/quality.py --build "$(build_folder)" "$@"
  elif [ "${1:-}" = attention ]; then
    shift
    benchmarks/sparse_attention.py --build "$(build_folder)" "$@"
  else
    "$(build_folder)/benchmarks/hone-kernel-benchmarks" "$@"
  fi
}
