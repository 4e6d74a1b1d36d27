// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading, adapting and comparing arrays.

#include "cli/arrays.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hone::cli {
namespace {

using io::Array;
using io::invalid;

double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == 0x1f)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double bfloat16ToDouble(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename Element>
double loadAs(const char *data, int64_t i) {
  Element element;
  std::memcpy(&element, data + i * static_cast<int64_t>(sizeof element), sizeof element);
  return static_cast<double>(element);
}

uint16_t load16(const char *data, int64_t i) {
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, sizeof bits);
  return bits;
}

/// Complex numbers count as two elements, 8-bit floats by their bits.
double elementAt(const Array &array, int64_t i) {
  switch (array.dtype()) {
  case HONE_F32:
  case HONE_C64:
    return loadAs<float>(array.data(), i);
  case HONE_F64:
  case HONE_C128:
    return loadAs<double>(array.data(), i);
  case HONE_F16:
    return halfToDouble(load16(array.data(), i));
  case HONE_BF16:
    return bfloat16ToDouble(load16(array.data(), i));
  case HONE_I8:
  case HONE_I4:
  case HONE_I2:
    return loadAs<int8_t>(array.data(), i);
  case HONE_I16:
    return loadAs<int16_t>(array.data(), i);
  case HONE_I32:
    return loadAs<int32_t>(array.data(), i);
  case HONE_I64:
    return loadAs<int64_t>(array.data(), i);
  case HONE_U16:
    return loadAs<uint16_t>(array.data(), i);
  case HONE_U32:
    return loadAs<uint32_t>(array.data(), i);
  case HONE_U64:
    return loadAs<uint64_t>(array.data(), i);
  default:
    return loadAs<uint8_t>(array.data(), i);
  }
}

/// |Δ| as a part of what is allowed: above 1 is too much.
double deviation(double actual, double expected, const Tolerance &tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected)))
    return 0;
  double difference = std::abs(actual - expected),
         allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  bool isMeasurable = std::isfinite(difference) && allowed > 0;
  return isMeasurable ? difference / allowed : std::numeric_limits<double>::infinity();
}

} // namespace

absl::StatusOr<NamedArrays> readArrays(const io::NpzReader &file, std::string_view prefix, const NameCheck &check) {
  NamedArrays arrays;
  for (const std::string &name : file.names()) {
    if (!name.starts_with(prefix))
      continue;
    HONE_RETURN_IF_ERROR(check(std::string_view(name).substr(prefix.size())));
    HONE_ASSIGN_OR_RETURN(Array array, file.read(name));
    arrays.emplace(name.substr(prefix.size()), std::move(array));
  }
  return arrays;
}

absl::StatusOr<NamedArrays> readInputs(const io::NpzReader &file, std::string_view prefix, const io::EntryInfo &entry) {
  HONE_ASSIGN_OR_RETURN(NamedArrays arrays, readArrays(file, prefix, [&](std::string_view name) {
                          return rt::checkInputName(entry, name);
                        }));
  adoptTypes(arrays, entry.inputs);
  return arrays;
}

std::vector<rt::NamedTensor> viewsOf(const NamedArrays &arrays) {
  std::vector<rt::NamedTensor> tensors;
  for (const auto &[name, array] : arrays)
    tensors.push_back({name, array.view()});
  return tensors;
}

std::string memberName(std::string_view name, std::set<std::string> &taken) {
  std::string safe(name);
  for (size_t i = 0; i < safe.size(); ++i)
    if (safe[i] == '/' || safe[i] == '\\' || (safe[i] == '.' && safe.find_first_not_of("._") > i))
      safe[i] = '_';
  std::string free = safe;
  for (int64_t number = 2; !taken.insert(free).second; ++number)
    free = io::cat(safe, "_", number);
  return free;
}

/// Signed integers of 4 or 2 bits as ml_dtypes stores them, in the low bits of bytes, become bytes with a sign. False where other bits are set.
static bool extendSigns(io::Array &array, int bits) {
  std::span<uint8_t> bytes = array.as<uint8_t>();
  if (std::ranges::any_of(bytes, [=](uint8_t byte) { return byte >> bits != 0; }))
    return false;
  auto sign = static_cast<uint8_t>(1 << (bits - 1));
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>((byte ^ sign) - sign);
  return true;
}

void adoptTypes(NamedArrays &arrays, const std::vector<io::TensorInfo> &infos) {
  for (const io::TensorInfo &info : infos) {
    auto found = arrays.find(info.name);
    if (found == arrays.end() || found->second.dtype() == info.dtype)
      continue;
    hone_dtype file = found->second.dtype();
    bool isStandIn =
        (file == HONE_U16 && info.dtype == HONE_BF16) ||
        (file == HONE_U8 && info.dtype >= HONE_F8E4M3FN && info.dtype <= HONE_F8E8M0) ||
        (file == HONE_I8 && (info.dtype == HONE_I4 || info.dtype == HONE_I2)) ||
        (file == HONE_U8 && (info.dtype == HONE_U4 || info.dtype == HONE_U2 || info.dtype == HONE_F4E2M1)) ||
        (file == HONE_U8 && info.dtype == HONE_I4 && extendSigns(found->second, 4)) ||
        (file == HONE_U8 && info.dtype == HONE_I2 && extendSigns(found->second, 2));
    if (isStandIn)
      (void)found->second.reinterpret(info.dtype); // the sizes are equal
  }
}

absl::StatusOr<Comparison> compare(const std::string &name, const Array &actual, const Array &expected,
                                   const Tolerance &tolerance) {
  if (actual.dtype() != expected.dtype() || !std::ranges::equal(actual.shape(), expected.shape()))
    return invalid("expected output '", name, "' to be ", io::dtypeName(expected.dtype()), " ",
                   io::shapeText(expected.shape()), ", but got ", io::dtypeName(actual.dtype()), " ",
                   io::shapeText(actual.shape()));
  Comparison result;
  double largest = -1;
  bool isComplex = actual.dtype() == HONE_C64 || actual.dtype() == HONE_C128;
  for (int64_t i = 0; i < actual.count() * (isComplex ? 2 : 1); ++i) {
    double a = elementAt(actual, i), e = elementAt(expected, i), part = deviation(a, e, tolerance);
    if (part <= largest)
      continue;
    largest = part;
    result = {part <= 1, isComplex ? i / 2 : i, a, e};
  }
  return result;
}

std::string indexText(std::span<const int64_t> shape, int64_t element) {
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return io::shapeText(index);
}

} // namespace hone::cli
