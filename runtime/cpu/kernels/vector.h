// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen floats at once; the compiler splits them where registers are shorter. Static, as everything that an ISA has.

#ifndef HONE_RUNTIME_CPU_KERNELS_VECTOR_H
#define HONE_RUNTIME_CPU_KERNELS_VECTOR_H

#include <stdint.h>

namespace {

constexpr int64_t kLanes = 16;

typedef float Vector __attribute__((ext_vector_type(16)));
typedef int32_t Integers __attribute__((ext_vector_type(16)));

/// What lies at `from`, which need not be aligned.
template <typename To> To loadAs(const void *from) {
  To to;
  __builtin_memcpy(&to, from, sizeof to);
  return to;
}

/// The bits of sixteen floats.
typedef uint32_t Words __attribute__((ext_vector_type(16)));

inline Vector asFloats(Words words) { return loadAs<Vector>(&words); }

inline Vector load(const float *from) { return loadAs<Vector>(from); }

/// Sixteen f16 as floats.
inline Vector loadHalves(const void *from) {
  typedef _Float16 Halves __attribute__((ext_vector_type(16)));
  return __builtin_convertvector(loadAs<Halves>(from), Vector);
}

inline void store(float *to, Vector vector) { __builtin_memcpy(to, &vector, sizeof vector); }

inline float sumLanes(Vector vector) {
  auto eight = vector.lo + vector.hi;
  auto four = eight.lo + eight.hi;
  auto two = four.lo + four.hi;
  return two.x + two.y;
}

/// Dot product of two rows of stride 1.
inline float dot(const float *a, const float *b, int64_t size) {
  Vector first = 0, second = 0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    first += load(a + i) * load(b + i);
    second += load(a + i + kLanes) * load(b + i + kLanes);
  }
  for (; i + kLanes <= size; i += kLanes)
    first += load(a + i) * load(b + i);
  float sum = sumLanes(first + second);
  for (; i < size; ++i)
    sum += a[i] * b[i];
  return sum;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_VECTOR_H
