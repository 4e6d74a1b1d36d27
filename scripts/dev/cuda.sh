# shellcheck shell=bash disable=SC2034,SC2154
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ./dev bundle-cuda, test-cuda and bench-cuda: what runs on a GPU, in one file that needs a driver and Python and nothing of Hone.

CUDA_BUNDLE=$HONE_SOURCE/build/cuda-bundle
CUDA_BUNDLE_BYTES=$((64 << 20)) # at most, so that it can be sent

# Parts of it (benchmarks/cuda/make_bundle.py), or all.
command_bundle-cuda() {
  local name file=$CUDA_BUNDLE
  for name in "$@"; do file+=-$name; done
  file+=.tar.xz
  command_build all
  python benchmarks/cuda/make_bundle.py --build "$(build_folder)" --output "$CUDA_BUNDLE" "$@"
  # Programs and libraries have the same kernels, and exports the same weights, some 100 MB apart.
  tar -C "$HONE_SOURCE/build" -cf - cuda-bundle | xz -T1 --lzma2=preset=6,dict=256MiB >"$file.part"
  mv "$file.part" "$file"
  [ "$(stat -c %s "$file")" -le "$CUDA_BUNDLE_BYTES" ] || fail "$file is larger than $CUDA_BUNDLE_BYTES bytes"
  echo "$file"
}

command_test-cuda() {
  command_bundle-cuda
  if [ $# -eq 0 ]; then set -- test; fi
  "$CUDA_BUNDLE/run" "$@"
}

command_bench-cuda() {
  command_bundle-cuda
  "$CUDA_BUNDLE/run" bench "$@"
}
