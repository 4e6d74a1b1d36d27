//===- arguments.h - what a kernel is called with, by name ------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The signatures and formats of signatures.def as types, for the sources of kernels. Nothing of the C++ library is
// included, and what has code is static, as kernels require.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_KERNELS_ARGUMENTS_H
#define HONE_KERNELS_ARGUMENTS_H

#include "hone/runtime/program.h"

#include <stddef.h>

namespace hone::kernels {

#define HONE_LIST(...) __VA_ARGS__
#define HONE_DECLARE(type, ...) __VA_OPT__(type __VA_ARGS__;)
#define HONE_MEMBERS(type, names) HONE_DECLARE(type, HONE_LIST names)
#define WEIGHT(name) name[Format::kPlanes]
#define OPTIONAL(...) __VA_ARGS__
#define OUTPUT(name) name

/// How a weight is stored: the tensors that it is, and the integers that follow those of the signature.
#define HONE_FORMAT(name, planes, integers)                                                                            \
  struct name {                                                                                                        \
    struct Planes {                                                                                                    \
      HONE_MEMBERS(hone_tensor, planes)                                                                                \
    };                                                                                                                 \
    struct Ints {                                                                                                      \
      HONE_MEMBERS(int64_t, integers)                                                                                  \
    };                                                                                                                 \
    static constexpr size_t kPlanes = sizeof(Planes) / sizeof(hone_tensor);                                            \
  };

/// Operands in their order, a weight as the array of its planes, and attributes in theirs.
#define HONE_SIGNATURE(name, operands, integers, reals)                                                                \
  struct name {                                                                                                        \
    template <typename Format> struct Operands {                                                                       \
      HONE_MEMBERS(hone_tensor, operands)                                                                              \
    };                                                                                                                 \
    struct Ints {                                                                                                      \
      HONE_MEMBERS(int64_t, integers)                                                                                  \
    };                                                                                                                 \
    struct Floats {                                                                                                    \
      HONE_MEMBERS(double, reals)                                                                                      \
    };                                                                                                                 \
  };
#include "hone/kernels/signatures.def"
#undef HONE_SIGNATURE
#undef HONE_FORMAT
#undef OUTPUT
#undef OPTIONAL
#undef WEIGHT
#undef HONE_MEMBERS
#undef HONE_DECLARE
#undef HONE_LIST

/// How many tensors a kernel is called with, absent ones and outputs included.
template <typename Signature, typename Format>
constexpr size_t kOperandCount = sizeof(typename Signature::template Operands<Format>) / sizeof(hone_tensor);

/// Whether a weight of this format has outliers.
template <typename Format> constexpr bool kHasOutliers = requires(typename Format::Planes planes) { planes.outliers; };

/// The arguments of a call.
template <typename Signature, typename Format> struct Call {
  const typename Signature::template Operands<Format> &operands;
  typename Signature::Ints ints;
  typename Format::Ints formatInts;
  typename Signature::Floats floats;
};

namespace {

/// Takes what is there of a list of attributes; returns what follows.
template <typename Names, typename Number> const Number *take(Names &names, const Number *from) {
  if constexpr (__is_empty(Names)) {
    return from;
  } else {
    __builtin_memcpy(&names, from, sizeof names);
    return from + sizeof names / sizeof *from;
  }
}

/// The arguments that a kernel's function gets. Its operands are consecutive, as the members of Operands are.
template <typename Signature, typename Format>
Call<Signature, Format> callOf(const hone_tensor *operands, const int64_t *ints, const double *floats) {
  Call<Signature, Format> call = {
      *reinterpret_cast<const typename Signature::template Operands<Format> *>(operands), {}, {}, {}};
  take(call.formatInts, take(call.ints, ints));
  take(call.floats, floats);
  return call;
}

/// The planes of a weight.
template <typename Format> const typename Format::Planes &planesOf(const hone_tensor *weight) {
  return *reinterpret_cast<const typename Format::Planes *>(weight);
}

} // namespace

} // namespace hone::kernels

#endif // HONE_KERNELS_ARGUMENTS_H
