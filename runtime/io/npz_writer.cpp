// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing of .npz: members are stored, sizes are always in zip64 fields, and no time is recorded, so that the bytes depend
// on the arrays alone.

#include "hone/io/npy.h"

#include "zip.h"

namespace hone::io {
namespace {

using namespace zip;

constexpr uint16_t kVersion = 45; // 4.5, the first with zip64
constexpr uint16_t kNamesAreUtf8 = 0x800;
constexpr uint32_t kFirstOfJanuary1980 = 0x00210000; // the zip format's zero
constexpr size_t kLongestName = 0xffff;

/// Little-endian words one after the other.
class Words {
public:
  template <typename... Numbers>
  Words &add(Numbers... numbers) {
    (bytes.append(reinterpret_cast<const char *>(&numbers), sizeof numbers), ...);
    return *this;
  }
  Words &text(const std::string &part) {
    bytes += part;
    return *this;
  }

  std::string bytes;
};

uint16_t half(size_t number) { return static_cast<uint16_t>(number); }

/// What the headers of a member have in common, from "version needed" to the length of its name.
std::string commonHeader(uint32_t crc, const std::string &name) {
  return Words()
      .add(kVersion, kNamesAreUtf8, kStored, kFirstOfJanuary1980, crc, kInZip64, kInZip64, half(name.size()))
      .bytes;
}

std::string zip64Field(const std::string &values) {
  return Words().add(kZip64Extra, half(values.size())).text(values).bytes;
}

std::string localHeader(const std::string &name, const std::string &common, const std::string &sizes) {
  std::string extra = zip64Field(sizes);
  return Words().add(kLocalHeader).text(common).add(half(extra.size())).text(name).text(extra).bytes;
}

std::string directoryEntry(const std::string &name, const std::string &common, const std::string &sizes,
                           uint64_t offset) {
  std::string extra = zip64Field(Words().text(sizes).add(offset).bytes);
  constexpr uint16_t comment = 0, disk = 0, internalAttributes = 0;
  constexpr uint32_t externalAttributes = 0;
  return Words()
      .add(kDirectoryEntry, kVersion)
      .text(common)
      .add(half(extra.size()), comment, disk, internalAttributes, externalAttributes, kInZip64)
      .text(name)
      .text(extra)
      .bytes;
}

/// The three records at the end: zip64's, its locator, and the old one that points there.
std::string directoryEnd(uint64_t begin, uint64_t bytes, uint64_t count) {
  constexpr uint32_t disk = 0, disks = 1;
  constexpr uint16_t oldDisk = 0, comment = 0, countInZip64 = 0xffff;
  constexpr uint64_t rest = kDirectoryEnd64Bytes - 12; // the record without its signature and this length
  return Words()
      .add(kDirectoryEnd64, rest, kVersion, kVersion, disk, disk, count, count, bytes, begin)
      .add(kDirectoryEnd64Locator, disk, begin + bytes, disks)
      .add(kDirectoryEnd, oldDisk, oldDisk, countInZip64, countInZip64, kInZip64, kInZip64, comment)
      .bytes;
}

} // namespace

absl::StatusOr<NpzWriter> NpzWriter::create(const std::string &path) {
  NpzWriter writer;
  HONE_ASSIGN_OR_RETURN(writer.file, FileWriter::create(path));
  return writer;
}

absl::Status NpzWriter::add(const std::string &name, const Array &array) {
  std::string fileName = name + ".npy", header = npyHeader(array.dtype(), array.shape());
  if (fileName.size() > kLongestName)
    return invalid("cannot write an array with a name of ", name.size(), " bytes");
  std::string_view data(array.data(), static_cast<size_t>(array.bytes()));
  uint64_t bytes = header.size() + data.size();
  std::string sizes = Words().add(bytes, bytes).bytes;
  std::string common = commonHeader(crcOf(data, crcOf(header)), fileName);
  directory += directoryEntry(fileName, common, sizes, file.position());
  ++count;
  HONE_RETURN_IF_ERROR(file.write(localHeader(fileName, common, sizes)));
  HONE_RETURN_IF_ERROR(file.write(header));
  return file.write(data);
}

absl::Status NpzWriter::commit() {
  std::string end = directoryEnd(file.position(), directory.size(), count);
  HONE_RETURN_IF_ERROR(file.write(directory));
  HONE_RETURN_IF_ERROR(file.write(end));
  return file.commit();
}

} // namespace hone::io
