//===- descriptions.h - the table of kernels, as data -----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kernel of the CPU and of CUDA with its operands and attributes by name: what the compiler orders them by, and
// asks what a kernel can do.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_KERNELS_DESCRIPTIONS_H
#define HONE_KERNELS_DESCRIPTIONS_H

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hone::kernels {

/// An operand or plane. A weight is the planes of the kernel's format.
struct Operand {
  std::string_view name;
  bool isWeight = false, isOptional = false, isOutput = false;
};

/// How a weight is stored (signatures.def), as the text of its lists.
struct FormatInfo {
  std::string_view name, planes, ints;
};

/// What kernels are called with (signatures.def), as the text of its lists.
struct SignatureInfo {
  std::string_view name, operands, ints, floats;
};

struct KernelInfo {
  std::string_view name;
  const SignatureInfo &signature;
  const FormatInfo &format;
};

namespace formats {
#define HONE_FORMAT(name, planes, ints) inline constexpr FormatInfo name = {#name, #planes, #ints};
#define HONE_SIGNATURE(...)
#include "hone/kernels/signatures.def"
#undef HONE_SIGNATURE
#undef HONE_FORMAT
} // namespace formats

namespace signatures {
#define HONE_FORMAT(...)
#define HONE_SIGNATURE(name, operands, ints, floats)                                                                   \
  inline constexpr SignatureInfo name = {#name, #operands, #ints, #floats};
#include "hone/kernels/signatures.def"
#undef HONE_SIGNATURE
#undef HONE_FORMAT
} // namespace signatures

#define HONE_KERNEL(name, function, signature, format, ...) {name, signatures::signature, formats::format},
inline constexpr KernelInfo kCpuKernels[] = {
#include "hone/kernels/cpu.def"
};
inline constexpr KernelInfo kCudaKernels[] = {
#include "hone/kernels/cuda.def"
};
#undef HONE_KERNEL

/// The kernel that programs import by this name, or null.
inline const KernelInfo *findKernelInfo(std::string_view name) {
  for (std::span<const KernelInfo> kernels : {std::span<const KernelInfo>(kCpuKernels), {kCudaKernels}})
    for (const KernelInfo &kernel : kernels)
      if (kernel.name == name)
        return &kernel;
  return nullptr;
}

/// The operands of a list such as "(x, WEIGHT(weight), OPTIONAL(bias), OUTPUT(y))", or the names of attributes.
inline std::vector<Operand> parseList(std::string_view list) {
  std::vector<Operand> operands;
  Operand operand;
  constexpr std::string_view ends = "(), ";
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find_first_of(ends, at), list.size());
    std::string_view word = list.substr(at, end - at);
    bool isMarker = end < list.size() && list[end] == '(';
    if (isMarker) {
      operand.isWeight |= word == "WEIGHT";
      operand.isOptional |= word == "OPTIONAL";
      operand.isOutput |= word == "OUTPUT";
    } else if (!word.empty()) {
      operand.name = word;
      operands.push_back(operand);
      operand = {};
    }
    at = end + 1;
  }
  return operands;
}

inline std::vector<Operand> operandsOf(const KernelInfo &kernel) { return parseList(kernel.signature.operands); }
inline std::vector<Operand> planesOf(const KernelInfo &kernel) { return parseList(kernel.format.planes); }

/// The names of its integers, those of the format last.
inline std::vector<std::string_view> integersOf(const KernelInfo &kernel) {
  std::vector<std::string_view> names;
  for (std::string_view list : {kernel.signature.ints, kernel.format.ints})
    for (const Operand &integer : parseList(list))
      names.push_back(integer.name);
  return names;
}

/// The names of its floats.
inline std::vector<std::string_view> floatsOf(const KernelInfo &kernel) {
  std::vector<std::string_view> names;
  for (const Operand &number : parseList(kernel.signature.floats))
    names.push_back(number.name);
  return names;
}

/// The number of the tensor that is an operand, or the first plane of it, among those of a call; -1 where the kernel has
/// none of that name.
inline int64_t indexOf(const KernelInfo &kernel, std::string_view name) {
  int64_t index = 0, planes = static_cast<int64_t>(planesOf(kernel).size());
  for (const Operand &operand : operandsOf(kernel)) {
    if (operand.name == name)
      return index;
    index += operand.isWeight ? planes : 1;
  }
  return -1;
}

/// How many tensors a call has, absent ones and outputs included.
inline int64_t countTensors(const KernelInfo &kernel) {
  int64_t count = 0, planes = static_cast<int64_t>(planesOf(kernel).size());
  for (const Operand &operand : operandsOf(kernel))
    count += operand.isWeight ? planes : 1;
  return count;
}

/// Whether a call with these integers adds what it computes to its output (accumulation), and does not overwrite it.
inline bool accumulates(const KernelInfo &kernel, std::span<const int64_t> ints) {
  std::vector<std::string_view> names = integersOf(kernel);
  for (size_t i = 0; i < std::min(names.size(), ints.size()); ++i)
    if (names[i] == "accumulates")
      return ints[i] != 0;
  return false;
}

/// Whether it adds `residual`, one of its operands, to what it computes.
inline bool hasResidual(const KernelInfo &kernel) { return indexOf(kernel, "residual") >= 0; }

} // namespace hone::kernels

#endif // HONE_KERNELS_DESCRIPTIONS_H
