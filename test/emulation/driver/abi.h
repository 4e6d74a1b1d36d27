// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What of the binary interface of NVIDIA's driver the emulation has, from the "CUDA Driver API" reference. It is declared here once
// more than in the runtime on purpose: a mistake in one of the two shows.

#pragma once

#include <cstddef>
#include <cstdint>

/// A function that libcuda.so.1 exports.
#define HONE_DRIVER_API extern "C" __attribute__((visibility("default"))) int

namespace hone::emulation {

/// Values of CUresult.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720,
  kInvalidClusterSize = 912,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureImplicit = 906,
  kGraphExecUpdateFailure = 910,
};

using DevicePointer = unsigned long long;

/// CUlaunchAttribute: 8 bytes that say which, and 64 of value.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster;
  };
};
constexpr int kAttributeCooperative = 2;
constexpr int kAttributeCluster = 4;

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void *stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// CUmemLocation.
struct MemoryLocation {
  int type;
  int id;
};

/// CUmemAllocationProp.
struct AllocationProperties {
  int type;
  int handleTypes;
  MemoryLocation location;
  void *win32;
  unsigned char flags[8];
};

/// CUmemAccessDesc.
struct AccessDescription {
  MemoryLocation location;
  int flags;
};

/// CUDA_KERNEL_NODE_PARAMS of the second version.
struct KernelNodeParams {
  void *function;
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void **arguments;
  void **extra;
  void *kernel;
  void *context;
};

/// CUgraphExecUpdateResultInfo.
struct GraphUpdateInfo {
  int result;
  void *errorNode;
  void *errorFromNode;
};

} // namespace hone::emulation
