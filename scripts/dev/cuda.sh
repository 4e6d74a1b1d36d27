# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev bundle-cuda, test-cuda and bench-cuda: what runs on a GPU, in one folder that needs a driver and Python and nothing of Hone.

CUDA_BUNDLE=$HONE_SOURCE/build/cuda-bundle

command_bundle-cuda() {
  command_build CudaKernelsTests hone-cuda-benchmarks hone hone-run
  rm -rf "$CUDA_BUNDLE"
  mkdir -p "$CUDA_BUNDLE"
  cp "$(build_folder)/test/unit/CudaKernelsTests" "$(build_folder)/benchmarks/hone-cuda-benchmarks" benchmarks/cuda/peers.py \
    benchmarks/cuda/check_artefacts.py benchmarks/cuda/run "$CUDA_BUNDLE"
  llvm-strip-22 "$CUDA_BUNDLE/CudaKernelsTests" "$CUDA_BUNDLE/hone-cuda-benchmarks"
  python benchmarks/cuda/make_artefacts.py --build "$(build_folder)" --output "$CUDA_BUNDLE/artefacts"
  tar -C "$HONE_SOURCE/build" -czf "$CUDA_BUNDLE.tar.gz" cuda-bundle
  echo "$CUDA_BUNDLE.tar.gz"
}

command_test-cuda() {
  command_bundle-cuda
  "$CUDA_BUNDLE/run" "${@:-test}"
}

command_bench-cuda() {
  command_bundle-cuda
  "$CUDA_BUNDLE/run" bench "$@"
}
