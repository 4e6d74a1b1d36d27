#!/usr/bin/env bash
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# build-onnx.sh VERSION PREFIX JOBS: installs ONNX's C++ library, from the source package of its Python release.
set -euo pipefail
version=$1 prefix=$2 jobs=$3

work=$prefix.work
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

pip download --no-deps --no-binary onnx --dest "$work" "onnx==$version"
tar -xzf "$work/onnx-$version.tar.gz" -C "$work"
cmake -G Ninja -S "$work/onnx-$version" -B "$work/build" \
  -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER=clang-22 \
  -DCMAKE_CXX_COMPILER=clang++-22 \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DONNX_BUILD_PYTHON=OFF \
  -DONNX_ML=ON \
  -DONNX_USE_PROTOBUF_SHARED_LIBS=ON
cmake --build "$work/build" --parallel "$jobs" --target install
