// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single elements of keys in any cache, for what reads each once.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_ELEMENTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_ELEMENTS_H

#include "kv_quantized_cache.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// The keys of one sequence and head as BlockedKeyLayout has them.
template <typename Cache> struct FloatKeys {
  const typename Cache::Element *data;
  BlockedKeyLayout layout;

  FloatKeys(const hone_tensor &keys, int64_t offset)
      : data(static_cast<const typename Cache::Element *>(keys.data) + offset),
        layout(Cache::kBlockWord, keys.sizes[3]) {}

  float at(int64_t position, int64_t d) const {
    return Cache::load1(data + layout.ofPosition(position) + layout.ofElement(d));
  }
};

/// And as QuantizedKeyLayout has them.
template <typename Cache> struct IntegerKeys {
  const uint8_t *data;
  QuantizedKeyLayout layout;

  IntegerKeys(const hone_tensor &keys, int64_t offset)
      : data(static_cast<const uint8_t *>(keys.data) + offset), layout(Cache::kBits, keys.sizes[3]) {}

  float at(int64_t position, int64_t d) const {
    uint8_t byte = data[layout.ofPosition(position) + layout.ofElement(d)];
    float step = number(layout.ofScale(position));
    if constexpr (Cache::kIsSigned)
      return step * static_cast<float>(static_cast<int8_t>(byte));
    else
      return number(layout.ofBase(position)) + step * static_cast<float>(byte >> layout.shiftOf(d) & 15);
  }

private:
  float number(int64_t offset) const { return Bf16Cache::load1(reinterpret_cast<const uint16_t *>(data + offset)); }
};

/// Those of f32 in rows.
struct PlainKeys {
  const float *data;
  int64_t stride, step;

  PlainKeys(const hone_tensor &keys, int64_t offset)
      : data(floats(keys) + offset), stride(keys.strides[2]), step(keys.strides[3]) {}

  float at(int64_t position, int64_t d) const { return data[position * stride + d * step]; }
};

} // namespace
} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_ELEMENTS_H
