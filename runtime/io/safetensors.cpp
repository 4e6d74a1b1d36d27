// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and writing of safetensors files.

#include "hone/io/safetensors.h"

#include "json.h"
#include "stored_types.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace hone::io {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000; // the format's own limit
constexpr uint64_t kAlignment = 64;
constexpr std::string_view kPaddingPrefix = "__padding__.";
constexpr const char *kMetadata = "__metadata__";

struct TypeWord {
  std::string_view word;
  hone_dtype dtype;
};

/// Sub-byte integers are stored an element a byte, as the program reads them.
constexpr TypeWord kTypeWords[] = {
    {"F32", HONE_F32},
    {"F16", HONE_F16},
    {"BF16", HONE_BF16},
    {"F64", HONE_F64},
    {"I8", HONE_I8},
    {"I16", HONE_I16},
    {"I32", HONE_I32},
    {"I64", HONE_I64},
    {"U8", HONE_U8},
    {"U16", HONE_U16},
    {"U32", HONE_U32},
    {"U64", HONE_U64},
    {"BOOL", HONE_BOOL},
    {"C64", HONE_C64},
    {"F8_E4M3", HONE_F8E4M3FN},
    {"F8_E4M3FNUZ", HONE_F8E4M3FNUZ},
    {"F8_E5M2", HONE_F8E5M2},
    {"F8_E5M2FNUZ", HONE_F8E5M2FNUZ},
    {"F8_E8M0", HONE_F8E8M0},
    {"I8", HONE_I4},
    {"U8", HONE_U4},
    {"U8", HONE_F4E2M1},
    {"I8", HONE_I2},
    {"U8", HONE_U2},
};

uint64_t alignUp(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

/// A list of whole numbers that are not negative.
std::optional<std::vector<int64_t>> asSizes(const ParsedJson *list) {
  if (!list || !list->is_array())
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const ParsedJson &element : *list) {
    std::optional<int64_t> size = asInteger(&element);
    if (!size || *size < 0)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

absl::StatusOr<StoredTensor> parseTensor(const std::string &name, const ParsedJson &entry, const std::string &path) {
  auto broken = [&](std::string_view reason) { return invalid(path, ": tensor '", name, "': ", reason); };
  std::optional<std::string> word = asString(member(entry, "dtype"));
  std::optional<std::vector<int64_t>> shape = asSizes(member(entry, "shape"));
  std::optional<std::vector<int64_t>> range = asSizes(member(entry, "data_offsets"));
  if (!word || !shape || !range || range->size() != 2)
    return broken("expected dtype, shape and two data_offsets");
  const auto *type = std::ranges::find(kTypeWords, *word, &TypeWord::word);
  if (type == std::end(kTypeWords))
    return broken(cat("unsupported dtype ", *word));
  if ((*range)[0] > (*range)[1])
    return broken("its data ends before it begins");
  StoredTensor tensor = {name, type->dtype, *shape, static_cast<uint64_t>((*range)[0]),
                         static_cast<uint64_t>((*range)[1] - (*range)[0])};
  std::optional<int64_t> expected = tensorBytes(tensor.dtype, tensor.shape);
  if (!expected || static_cast<uint64_t>(*expected) != tensor.bytes)
    return broken(cat("expected ", expected ? cat(*expected) : "fewer", " bytes for ", *word, " of shape ",
                      shapeText(*shape), ", but got ", tensor.bytes));
  return tensor;
}

/// Adds what a header says to `tensors`, in the order of their bytes and with padding, and to `metadata`.
absl::Status parseHeader(std::string_view header, const std::string &path, std::vector<StoredTensor> &tensors,
                         std::map<std::string, std::string> &metadata) {
  HONE_ASSIGN_OR_RETURN(JsonDocument document, parseJson(header, path));
  if (!document->is_object())
    return invalid(path, ": expected the header to be a JSON object");
  for (const auto &[name, entry] : document->items()) {
    if (name == kMetadata) {
      for (const auto &[key, value] : entry.items())
        if (std::optional<std::string> text = asString(&value))
          metadata[key] = *text;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(StoredTensor tensor, parseTensor(name, entry, path));
    tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors, {},
                    [](const StoredTensor &tensor) { return std::tie(tensor.offset, tensor.bytes, tensor.name); });
  return absl::OkStatus();
}

void dropPadding(std::vector<StoredTensor> &tensors) {
  std::erase_if(tensors, [](const StoredTensor &tensor) { return tensor.name.starts_with(kPaddingPrefix); });
}

} // namespace

std::string_view storedTypeName(hone_dtype dtype) {
  const auto *row = std::ranges::find(kTypeWords, dtype, &TypeWord::dtype);
  return row == std::end(kTypeWords) ? std::string_view() : row->word;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::open(const std::string &path) {
  SafetensorsReader reader;
  HONE_ASSIGN_OR_RETURN(reader.file, MappedFile::open(path));
  reader.file.adviseHugePages();
  uint64_t length = 0;
  if (reader.file.size() < kLengthBytes)
    return invalid(path, ": expected a safetensors file, but got ", reader.file.size(), " bytes");
  std::memcpy(&length, reader.file.data(), kLengthBytes);
  if (length > kLongestHeader || length > reader.file.size() - kLengthBytes)
    return invalid(path, ": not a safetensors file, or cut short: the header takes ", length, " bytes of a file of ",
                   reader.file.size());
  reader.dataBegin = kLengthBytes + length;
  HONE_RETURN_IF_ERROR(
      parseHeader(reader.file.text().substr(kLengthBytes, length), path, reader.stored, reader.strings));
  HONE_RETURN_IF_ERROR(reader.checkLayout(path));
  return reader;
}

absl::Status SafetensorsReader::checkLayout(const std::string &path) {
  uint64_t available = file.size() - dataBegin, end = 0;
  for (const StoredTensor &tensor : stored) {
    if (tensor.offset > available || tensor.bytes > available - tensor.offset)
      return invalid(path, ": tensor '", tensor.name, "' ends at byte ", tensor.offset + tensor.bytes,
                     " of the data, but the file has ", available, "; it may be cut short");
    if (tensor.offset < end)
      return invalid(path, ": tensor '", tensor.name, "' overlaps the one before it");
    if (tensor.offset > end)
      return invalid(path, ": ", tensor.offset - end, " bytes before tensor '", tensor.name, "' belong to no tensor");
    end = tensor.offset + tensor.bytes;
  }
  if (end != available)
    return invalid(path, ": expected ", end, " bytes of tensor data, but got ", available);
  dropPadding(stored);
  for (size_t i = 0; i < stored.size(); ++i)
    byName[stored[i].name] = i;
  return absl::OkStatus();
}

const StoredTensor *SafetensorsReader::find(std::string_view name) const {
  auto found = byName.find(std::string(name));
  return found == byName.end() ? nullptr : &stored[found->second];
}

absl::Status SafetensorsWriter::layOut() {
  uint64_t offset = 0;
  std::map<std::string_view, bool> seen;
  for (StoredTensor &tensor : stored) {
    std::optional<int64_t> bytes = tensorBytes(tensor.dtype, tensor.shape);
    if (storedTypeName(tensor.dtype).empty() || !bytes)
      return invalid("cannot store tensor '", tensor.name, "' of type ", dtypeName(tensor.dtype), " and shape ",
                     shapeText(tensor.shape), " in ", path);
    if (!seen.emplace(tensor.name, true).second || tensor.name == kMetadata || tensor.name.starts_with(kPaddingPrefix))
      return invalid("cannot store tensor '", tensor.name, "' in ", path, ": the name is taken");
    tensor.offset = alignUp(offset);
    tensor.bytes = static_cast<uint64_t>(*bytes);
    offset = tensor.offset + tensor.bytes;
  }
  return absl::OkStatus();
}

std::string SafetensorsWriter::makeHeader(const std::map<std::string, std::string> &metadata) const {
  Json document = Json::object();
  if (!metadata.empty())
    document[kMetadata] = metadata;
  uint64_t end = 0;
  auto add = [&](const std::string &name, std::string_view type, const std::vector<int64_t> &shape, uint64_t begin,
                 uint64_t bytes) {
    Json &entry = document[name];
    entry["dtype"] = std::string(type);
    entry["shape"] = shape;
    entry["data_offsets"] = {begin, begin + bytes};
    end = begin + bytes;
  };
  for (size_t i = 0; i < stored.size(); ++i) {
    const StoredTensor &tensor = stored[i];
    if (uint64_t gap = tensor.offset - end)
      add(cat(kPaddingPrefix, i), "U8", {static_cast<int64_t>(gap)}, end, gap);
    add(tensor.name, storedTypeName(tensor.dtype), tensor.shape, tensor.offset, tensor.bytes);
  }
  std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(alignUp(kLengthBytes + text.size()) - kLengthBytes, ' ');
  return text;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::create(const std::string &path, std::vector<StoredTensor> tensors,
                                                            const std::map<std::string, std::string> &metadata) {
  SafetensorsWriter writer;
  writer.path = path;
  writer.stored = std::move(tensors);
  HONE_RETURN_IF_ERROR(writer.layOut());
  writer.header = writer.makeHeader(metadata);
  uint64_t length = writer.header.size();
  if (length > kLongestHeader)
    return invalid("cannot write ", path, ": a header of ", length, " bytes exceeds the format's limit");
  HONE_ASSIGN_OR_RETURN(writer.file, FileWriter::create(path));
  HONE_RETURN_IF_ERROR(writer.file.write({reinterpret_cast<const char *>(&length), kLengthBytes}));
  HONE_RETURN_IF_ERROR(writer.file.write(writer.header));
  return writer;
}

absl::StatusOr<std::vector<StoredTensor>> SafetensorsWriter::tensorsAsRead() const {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
  HONE_RETURN_IF_ERROR(parseHeader(header, path, tensors, metadata));
  dropPadding(tensors);
  return tensors;
}

absl::Status SafetensorsWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    while (current < stored.size() && currentBytes == stored[current].bytes) {
      ++current;
      currentBytes = 0;
    }
    if (current == stored.size())
      return absl::InternalError(cat("more bytes than announced for ", path));
    const StoredTensor &tensor = stored[current];
    if (currentBytes == 0) // The data begins aligned, so the file's position tells the gap.
      HONE_RETURN_IF_ERROR(file.write(std::string(alignUp(file.position()) - file.position(), '\0')));
    std::string_view piece = bytes.substr(0, tensor.bytes - currentBytes);
    HONE_RETURN_IF_ERROR(file.write(piece));
    currentBytes += piece.size();
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::commit() {
  while (current < stored.size() && currentBytes == stored[current].bytes) {
    ++current;
    currentBytes = 0;
  }
  if (current != stored.size())
    return absl::InternalError(cat("fewer bytes than announced for ", path, ": tensor '", stored[current].name, "'"));
  return file.commit();
}

} // namespace hone::io
