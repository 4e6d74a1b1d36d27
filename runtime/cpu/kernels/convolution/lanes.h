// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between rows of channels and positions with sixteen channels as lanes.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H

#include "../linear/columns.h"
#include "../transpose.h"
#include "problem.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace {

/// The first `count` of sixteen channels, at least one; loadChannels has 0 in the others.
#ifdef __AVX512F__
inline __mmask16 maskOfChannels(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
inline Vector loadChannels(const float *from, int64_t count) {
  return count >= kLanes ? load(from) : (Vector)_mm512_maskz_loadu_ps(maskOfChannels(count), from);
}
inline void storeChannels(float *to, Vector vector, int64_t count) {
  if (count >= kLanes)
    return store(to, vector);
  _mm512_mask_storeu_ps(to, maskOfChannels(count), (__m512)vector);
}
#elif defined(__AVX2__)
/// The mask of lanes [first, first + 8).
inline __m256i maskOfChannels(int64_t count, int64_t first) {
  alignas(64) static const int32_t kMasks[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                         -1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(kMasks + kLanes - count + first));
}
inline Vector loadChannels(const float *from, int64_t count) {
  if (count >= kLanes)
    return load(from);
  typedef float Eight __attribute__((ext_vector_type(8)));
  auto low = (Eight)_mm256_maskload_ps(from, maskOfChannels(count, 0)),
       high = (Eight)_mm256_maskload_ps(from + kLanes / 2, maskOfChannels(count, kLanes / 2));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// A masked store of AVX2 takes longer than copying on AMD.
inline void storeChannels(float *to, Vector vector, int64_t count) { storeColumns(to, vector, count); }
#else
inline Vector loadChannels(const float *from, int64_t count) { return loadColumns(from, count); }
inline void storeChannels(float *to, Vector vector, int64_t count) { storeColumns(to, vector, count); }
#endif

/// Output channels [first, first + count), at most sixteen, of a sample.
struct OutputLanes {
  int64_t sample, first, count;
};

/// The bias of sixteen output channels from `first` on, of which `count` are there.
inline Vector biasOf(const Epilogue &epilogue, int64_t first, int64_t count) {
  if (!epilogue.bias.data)
    return 0.0f;
  if (epilogue.bias.stride == 1)
    return loadChannels(epilogue.bias.data + first, count);
  float bias[kLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    bias[i] = epilogue.biasOf(first + i);
  return load(bias);
}

/// storeLanes where the channels of a position lie one after the other.
inline void storeChannelsLast(const Convolution &problem, const OutputLanes &lanes, int64_t begin, int64_t size,
                              const float *sums, int64_t stride) {
  const Samples &y = problem.y, &residual = problem.epilogue.residual;
  Vector bias = biasOf(problem.epilogue, lanes.first, lanes.count);
  float *to = y.at(lanes.sample, lanes.first);
  const float *added = residual.data ? residual.at(lanes.sample, lanes.first) : nullptr;
  int64_t pitch = y.pitch(), addedPitch = residual.pitch();
  for (int64_t i = 0; i < size; ++i) {
    Vector row = load(sums + i * stride) + bias;
    if (added)
      row += loadChannels(added + (addedPitch ? (begin + i) * addedPitch : residual.offsetOf(begin + i)), lanes.count);
    storeChannels(to + (pitch ? (begin + i) * pitch : y.offsetOf(begin + i)), problem.epilogue.limit(row), lanes.count);
  }
}

/// Writes positions [begin, begin + size) of y: sums of the lanes, `stride` floats from one position to the next, and the epilogue.
inline void storeLanes(const Convolution &problem, const OutputLanes &lanes, int64_t begin, int64_t size,
                       const float *sums, int64_t stride) {
  if (problem.storesChannelsLast())
    return storeChannelsLast(problem, lanes, begin, size, sums, stride);
  const Samples &y = problem.y, &residual = problem.epilogue.residual;
  bool isDense = y.isDense() && (!residual.data || residual.isDense());
  for (int64_t next = 0; next < size; next += kLanes) {
    int64_t p =
        isDense && size >= kLanes ? smaller(next, size - kLanes) : next; // the last positions may be written twice
    Vector rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      rows[i] = load(sums + smaller(p + i, size - 1) * stride);
    transpose(rows);
    int64_t count = smaller(kLanes, size - p);
    for (int64_t i = 0; i < lanes.count; ++i) {
      Vector row = rows[i] + problem.epilogue.biasOf(lanes.first + i);
      float *to = y.at(lanes.sample, lanes.first + i);
      const float *added = residual.data ? residual.at(lanes.sample, lanes.first + i) : nullptr;
      if (isDense) {
        if (added)
          row += loadColumns(added + begin + p, count);
        storeColumns(to + begin + p, problem.epilogue.limit(row), count);
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        int64_t position = begin + p + j;
        float sum = row[j] + (added ? added[residual.offsetOf(position)] : 0.0f);
        to[y.offsetOf(position)] = problem.epilogue.limit(sum);
      }
    }
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H
