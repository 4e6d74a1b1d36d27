// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .npy format: magic, version, a Python dictionary literal as header, raw elements (numpy.lib.format).

#include "npy_header.h"

#include <charconv>
#include <cstring>

namespace hone::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kNpyPrefixBytes =
    12; // magic, version, and a length of up to 32 bits; no header is shorter than the difference

struct TypeWord {
  std::string_view word;
  hone_dtype dtype;
};

/// Words of `descr`. The first row of a type is the one that is written.
constexpr TypeWord kTypeWords[] = {
    {"<f4", HONE_F32},
    {"<f2", HONE_F16},
    {"<f8", HONE_F64},
    {"|i1", HONE_I8},
    {"<i2", HONE_I16},
    {"<i4", HONE_I32},
    {"<i8", HONE_I64},
    {"|u1", HONE_U8},
    {"<u2", HONE_U16},
    {"<u4", HONE_U32},
    {"<u8", HONE_U64},
    {"|b1", HONE_BOOL},
    {"<c8", HONE_C64},
    {"<c16", HONE_C128},
    {"<u2", HONE_BF16},
    {"|u1", HONE_F8E4M3FN},
    {"|u1", HONE_F8E4M3FNUZ},
    {"|u1", HONE_F8E5M2},
    {"|u1", HONE_F8E5M2FNUZ},
    {"|u1", HONE_F8E8M0},
    {"|i1", HONE_I4},
    {"|u1", HONE_U4},
    {"|u1", HONE_F4E2M1},
    {"|i1", HONE_I2},
    {"|u1", HONE_U2},
    {"<i1", HONE_I8},
    {"<u1", HONE_U8},
    {"<b1", HONE_BOOL},
    {"=f4", HONE_F32},
    // What numpy writes for the types of ml_dtypes: bytes without a meaning.
    {"<V2", HONE_U16},
    {"|V2", HONE_U16},
    {"<V1", HONE_U8},
    {"|V1", HONE_U8},
    {"<f1", HONE_U8},
};

/// A reader of the header's dictionary literal: just as much Python as numpy writes.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text(text) {}

  bool parse() {
    if (!accept('{'))
      return false;
    while (!accept('}')) {
      if (!parseItem())
        return false;
      accept(',');
    }
    skipSpace();
    return text.empty() && hasType && hasOrder && hasShape;
  }

  std::string_view type;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

private:
  bool parseItem() {
    std::string_view key;
    if (!parseString(key) || !accept(':'))
      return false;
    if (key == "descr")
      return hasType = parseString(type);
    if (key == "fortran_order")
      return hasOrder = parseBool(fortranOrder);
    return key == "shape" && (hasShape = parseShape());
  }

  bool parseString(std::string_view &value) {
    skipSpace();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return false;
    size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos)
      return false;
    value = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return true;
  }

  bool parseBool(bool &value) {
    skipSpace();
    for (bool candidate : {false, true}) {
      std::string_view word = candidate ? "True" : "False";
      if (text.starts_with(word)) {
        text.remove_prefix(word.size());
        value = candidate;
        return true;
      }
    }
    return false;
  }

  bool parseShape() {
    if (!accept('('))
      return false;
    while (!accept(')')) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        return false;
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      shape.push_back(size);
      accept(',');
    }
    return true;
  }

  bool accept(char wanted) {
    skipSpace();
    if (text.empty() || text[0] != wanted)
      return false;
    text.remove_prefix(1);
    return true;
  }

  void skipSpace() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t'))
      text.remove_prefix(1);
  }

  std::string_view text;
  bool hasType = false, hasOrder = false, hasShape = false;
};

/// Splits the bytes into header and what follows of them.
bool splitHeader(std::string_view bytes, std::string_view &header, std::string_view &data) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kNpyPrefixBytes)
    return false;
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  bool wide = byte(6) >= 2; // version 1 has a 16-bit header length, versions 2 and 3 a 32-bit one
  size_t begin = wide ? 12 : 10;
  size_t length = byte(8) | byte(9) << 8;
  if (wide)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin)
    return false;
  header = bytes.substr(begin, length);
  data = bytes.substr(begin + length);
  return true;
}

std::string_view typeWord(hone_dtype dtype) {
  for (const TypeWord &row : kTypeWords)
    if (row.dtype == dtype)
      return row.word;
  return "|V1";
}

} // namespace

absl::StatusOr<NpyHeader> parseNpyHeader(std::string_view bytes, uint64_t total, const std::string &name) {
  std::string_view headerText, data;
  if (!splitHeader(bytes, headerText, data))
    return invalid(name, ": not a .npy file, or cut short in its header");
  HeaderParser header(headerText);
  if (!header.parse())
    return invalid(name, ": unsupported .npy header '", headerText.substr(0, 80), "'");
  if (header.fortranOrder)
    return invalid(name, ": unsupported Fortran order; save numpy.ascontiguousarray(array)");
  const TypeWord *type = nullptr;
  for (const TypeWord &row : kTypeWords)
    if (!type && row.word == header.type)
      type = &row;
  if (!type)
    return invalid(name, ": unsupported element type '", header.type,
                   "'; supported: ", "little-endian bool, (unsigned) integers, f1, f2, f4, f8, c8, c16, V1, V2");
  std::optional<int64_t> expected = tensorBytes(type->dtype, header.shape);
  uint64_t size = bytes.size() - data.size();
  if (!expected || static_cast<uint64_t>(*expected) != total - size)
    return invalid(name, ": expected ", expected ? cat(*expected) : "fewer", " bytes of data for shape ",
                   shapeText(header.shape), ", but got ", total - size);
  return NpyHeader{type->dtype, std::move(header.shape), size};
}

absl::StatusOr<Array> createNpyArray(const NpyHeader &header, const std::string &name) {
  absl::StatusOr<Array> array = Array::create(header.dtype, header.shape);
  if (!array.ok())
    return absl::Status(array.status().code(), cat(name, ": ", array.status().message()));
  return array;
}

absl::StatusOr<Array> parseNpy(std::string_view bytes, const std::string &name) {
  HONE_ASSIGN_OR_RETURN(NpyHeader header, parseNpyHeader(bytes, bytes.size(), name));
  HONE_ASSIGN_OR_RETURN(Array array, createNpyArray(header, name));
  if (array.bytes() > 0)
    std::memcpy(array.data(), bytes.data() + header.bytes, static_cast<size_t>(array.bytes()));
  return array;
}

absl::StatusOr<Array> readNpy(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return parseNpy(file.text(), path);
}

std::string npyHeader(hone_dtype dtype, std::span<const int64_t> shape) {
  std::string dictionary = cat("{'descr': '", typeWord(dtype), "', 'fortran_order': False, 'shape': (");
  for (int64_t size : shape)
    dictionary += cat(size, shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1)
    dictionary.erase(dictionary.size() - 2);
  dictionary += "), }";
  constexpr size_t prefix = 10, alignment = 64; // numpy aligns the data to 64 bytes, with a newline at the end
  size_t length = (prefix + dictionary.size() + 1 + alignment - 1) / alignment * alignment - prefix;
  dictionary.resize(length - 1, ' ');
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + dictionary + "\n";
}

absl::Status writeNpy(const std::string &path, const Array &array) {
  HONE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path));
  HONE_RETURN_IF_ERROR(writer.write(npyHeader(array.dtype(), array.shape())));
  HONE_RETURN_IF_ERROR(writer.write({array.data(), static_cast<size_t>(array.bytes())}));
  return writer.commit();
}

} // namespace hone::io
