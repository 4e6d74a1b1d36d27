// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// numpy's .npy and .npz files.
//
// Types numpy does not have travel as the unsigned integer of their size: bf16 as u16, 8-bit floats as u8; i4 as i8 and
// u4 as u8. Writing does so silently; reading gives the integer type, which Array::reinterpret turns back. Fortran order
// and big-endian data are refused.

#ifndef HONE_IO_NPY_H
#define HONE_IO_NPY_H

#include "hone/io/array.h"
#include "hone/io/file.h"

#include <map>
#include <utility>

namespace hone::io {

/// The array in the bytes of a .npy file; `name` begins every error.
absl::StatusOr<Array> parseNpy(std::string_view bytes, const std::string &name);
absl::StatusOr<Array> readNpy(const std::string &path);

/// The bytes before the data of a .npy file.
std::string npyHeader(hone_dtype dtype, std::span<const int64_t> shape);
absl::Status writeNpy(const std::string &path, const Array &array);

/// Reads arrays of a .npz (a zip of .npy files, stored or deflated) one by one. An array takes as much memory as its .npy header says, and
/// no byte of the file is part of two.
class NpzReader {
public:
  static absl::StatusOr<NpzReader> open(const std::string &path);

  /// Names without ".npy", in the file's order.
  const std::vector<std::string> &names() const { return order; }
  bool contains(const std::string &name) const { return members.contains(name); }
  absl::StatusOr<Array> read(const std::string &name) const;

private:
  struct Member {
    uint16_t method;
    uint32_t crc;
    uint64_t packedBytes, bytes, localHeader;
  };

  absl::Status readDirectory();
  absl::Status readEntry(std::string_view directory, size_t &position);
  absl::Status checkOverlaps() const;
  absl::StatusOr<Array> readDeflated(const Member &member, std::string_view packed, const std::string &label) const;
  absl::StatusOr<std::string_view> packed(const Member &member, const std::string &name) const;

  std::string path;
  MappedFile file;
  std::vector<std::string> order;
  std::map<std::string, Member> members;
};

/// Writes a .npz member by member (stored, with zip64 where sizes need it); commit() makes it appear.
class NpzWriter {
public:
  static absl::StatusOr<NpzWriter> create(const std::string &path);
  absl::Status add(const std::string &name, const Array &array);
  absl::Status commit();

private:
  FileWriter file;
  std::string directory;
  uint64_t count = 0;
};

} // namespace hone::io

#endif // HONE_IO_NPY_H
