// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: tensor maps.

#include "driver/api.h"
#include "exec/tensor_map.h"

using namespace hone::emulation;

HONE_DRIVER_API cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                                       const uint64_t *strides, const unsigned *box, const unsigned *elementStrides,
                                       int interleave, int swizzle, int promotion, int fill) {
  Call call;
  if (!call)
    return call.status;
  if (call.context->chip.architecture < 90)
    return kNotSupported;
  auto place = reinterpret_cast<uint64_t>(map);
  if (place == 0 || place % kTensorMapAlignment != 0)
    return kInvalidValue;
  TensorMap encoded;
  TensorMapRequest request = {
      type,      rank, reinterpret_cast<uint64_t>(address), sizes, strides, box, elementStrides, interleave, swizzle,
      promotion, fill};
  if (int result = encodeTensorMap(request, encoded); result != kSuccess)
    return result;
  std::memset(map, 0, kTensorMapBytes);
  std::memcpy(map, &encoded, sizeof encoded);
  return kSuccess;
}
