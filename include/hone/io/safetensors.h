// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The safetensors format: eight bytes of header length, a JSON header, tensor data.
//
// The writer begins the data, and every tensor in it, at a multiple of 64 bytes of the file. The format allows no gaps,
// so the bytes between two tensors are a tensor themselves, named "__padding__.<n>"; the reader leaves those out.

#ifndef HONE_IO_SAFETENSORS_H
#define HONE_IO_SAFETENSORS_H

#include "hone/io/array.h"
#include "hone/io/file.h"

#include <map>

namespace hone::io {

/// A tensor of a file: its type, its shape, and where its bytes lie, counted from the first byte of tensor data.
struct StoredTensor {
  std::string name;
  hone_dtype dtype;
  std::vector<int64_t> shape;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// A mapped file whose header was checked in full: every tensor lies within the file, has as many bytes as its type and
/// shape say, and overlaps no other.
class SafetensorsReader {
public:
  static absl::StatusOr<SafetensorsReader> open(const std::string &path);

  /// In the order of their bytes.
  const std::vector<StoredTensor> &tensors() const { return stored; }
  const StoredTensor *find(std::string_view name) const;
  const std::map<std::string, std::string> &metadata() const { return strings; }

  /// First byte of tensor data.
  const uint8_t *data() const { return file.data() + dataBegin; }
  /// All tensor data.
  std::span<const uint8_t> allBytes() const { return {data(), static_cast<size_t>(file.size() - dataBegin)}; }
  const uint8_t *bytesOf(const StoredTensor &tensor) const { return data() + tensor.offset; }
  uint64_t dataOffset() const { return dataBegin; }

private:
  absl::Status checkLayout(const std::string &path);

  MappedFile file;
  uint64_t dataBegin = 0;
  std::vector<StoredTensor> stored;
  std::map<std::string, size_t> byName;
  std::map<std::string, std::string> strings;
};

/// Writes tensors one after the other without holding them: announce all, then append their bytes in that order.
class SafetensorsWriter {
public:
  /// `tensors` give name, dtype and shape; offset and bytes are filled in (see tensors()).
  static absl::StatusOr<SafetensorsWriter> create(const std::string &path, std::vector<StoredTensor> tensors,
                                                  const std::map<std::string, std::string> &metadata = {});

  const std::vector<StoredTensor> &tensors() const { return stored; }
  /// The same as a reader of the whole file will have them: in the order of their bytes, with names as JSON has them.
  absl::StatusOr<std::vector<StoredTensor>> tensorsAsRead() const;

  /// The next bytes of the tensors, in order; a piece may end anywhere, also in a later tensor.
  absl::Status append(std::string_view bytes);

  /// Makes the file appear. Fails unless every byte that was announced was appended.
  absl::Status commit();

private:
  absl::Status layOut();
  std::string makeHeader(const std::map<std::string, std::string> &metadata) const;

  FileWriter file;
  std::string path, header;
  std::vector<StoredTensor> stored;
  size_t current = 0;        // tensor that the next byte belongs to
  uint64_t currentBytes = 0; // bytes of it that were appended
};

} // namespace hone::io

#endif // HONE_IO_SAFETENSORS_H
