// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .npz format: a zip archive of .npy files (PKWARE APPNOTE 6.3.9, with zip64). The central directory is believed
// for sizes and offsets after they are checked against the file; every member is checked against its CRC.

#include "hone/io/npy.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace hone::io {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50, kDirectoryEnd64Locator = 0x07064b50;
constexpr size_t kLocalHeaderBytes = 30, kDirectoryEntryBytes = 46, kDirectoryEndBytes = 22, kLocatorBytes = 20;
constexpr size_t kDirectoryEnd64Bytes = 56, kLongestComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Extra = 1;
constexpr uint32_t kInZip64 = 0xffffffff; // "look in the zip64 extra field"
constexpr uint64_t kBestRatio = 1032;     // deflate cannot shrink further, so a larger claim is a lie

template <typename Number> Number load(std::string_view bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

template <typename Number> void store(std::string &bytes, Number number) {
  bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
}

/// The field of header `id` among zip extra fields, or nothing.
std::string_view extraField(std::string_view extra, uint16_t id) {
  while (extra.size() >= 4) {
    size_t length = load<uint16_t>(extra, 2);
    if (length > extra.size() - 4)
      return {};
    if (load<uint16_t>(extra, 0) == id)
      return extra.substr(4, length);
    extra.remove_prefix(4 + length);
  }
  return {};
}

/// Replaces a 32-bit value that is all ones by the next one of the zip64 field.
bool resolve64(uint64_t &value, std::string_view &field) {
  if (value != kInZip64)
    return true;
  if (field.size() < 8)
    return false;
  value = load<uint64_t>(field, 0);
  field.remove_prefix(8);
  return true;
}

/// The central directory's bytes, found from the end of the file.
bool findDirectory(std::string_view text, std::string_view &directory, uint64_t &count) {
  if (text.size() < kDirectoryEndBytes)
    return false;
  size_t end = text.size() - kDirectoryEndBytes;
  size_t last = end > kLongestComment ? end - kLongestComment : 0;
  while (load<uint32_t>(text, end) != kDirectoryEnd)
    if (end-- == last)
      return false;
  count = load<uint16_t>(text, end + 10);
  uint64_t size = load<uint32_t>(text, end + 12), offset = load<uint32_t>(text, end + 16);
  if (end >= kLocatorBytes && load<uint32_t>(text, end - kLocatorBytes) == kDirectoryEnd64Locator) {
    uint64_t record = load<uint64_t>(text, end - kLocatorBytes + 8);
    if (record > text.size() || text.size() - record < kDirectoryEnd64Bytes ||
        load<uint32_t>(text, record) != kDirectoryEnd64)
      return false;
    count = load<uint64_t>(text, record + 32);
    size = load<uint64_t>(text, record + 40);
    offset = load<uint64_t>(text, record + 48);
  }
  if (offset > text.size() || size > text.size() - offset)
    return false;
  directory = text.substr(offset, size);
  return true;
}

bool inflateTo(std::string_view packed, std::string &bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  constexpr size_t step = size_t{1} << 30; // zlib counts in 32 bits
  int status = Z_OK;
  size_t read = 0, written = 0;
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(step, packed.size() - read));
    stream.next_out = reinterpret_cast<Bytef *>(bytes.data() + written);
    stream.avail_out = static_cast<uInt>(std::min(step, bytes.size() - written));
    size_t in = stream.avail_in, out = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && written == bytes.size();
}

uint32_t crcOf(std::string_view bytes, uint32_t crc = 0) {
  if (bytes.empty()) // zlib takes a null buffer as "start anew"
    return crc;
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

} // namespace

absl::StatusOr<NpzReader> NpzReader::open(const std::string &path) {
  NpzReader reader;
  reader.path = path;
  HONE_ASSIGN_OR_RETURN(reader.file, MappedFile::open(path));
  HONE_RETURN_IF_ERROR(reader.readDirectory());
  return reader;
}

absl::Status NpzReader::readDirectory() {
  std::string_view directory;
  uint64_t count = 0;
  if (!findDirectory(file.text(), directory, count))
    return invalid(path, ": not a .npz file, or cut short");
  size_t position = 0;
  for (uint64_t i = 0; i < count; ++i)
    HONE_RETURN_IF_ERROR(readEntry(directory, position));
  return absl::OkStatus();
}

absl::Status NpzReader::readEntry(std::string_view directory, size_t &position) {
  std::string_view entry = directory.substr(position);
  auto broken = [&] { return invalid(path, ": damaged zip directory at entry ", order.size()); };
  if (entry.size() < kDirectoryEntryBytes || load<uint32_t>(entry, 0) != kDirectoryEntry)
    return broken();
  size_t nameBytes = load<uint16_t>(entry, 28), extraBytes = load<uint16_t>(entry, 30);
  size_t total = kDirectoryEntryBytes + nameBytes + extraBytes + load<uint16_t>(entry, 32);
  if (total > entry.size())
    return broken();
  std::string name(entry.substr(kDirectoryEntryBytes, nameBytes));
  std::string_view field = extraField(entry.substr(kDirectoryEntryBytes + nameBytes, extraBytes), kZip64Extra);
  Member member = {load<uint16_t>(entry, 10), load<uint32_t>(entry, 16), load<uint32_t>(entry, 20),
                   load<uint32_t>(entry, 24), load<uint32_t>(entry, 42)};
  if (!resolve64(member.bytes, field) || !resolve64(member.packedBytes, field) || !resolve64(member.localHeader, field))
    return broken();
  if (name.ends_with(".npy"))
    name.resize(name.size() - 4);
  if (!members.emplace(name, member).second)
    return invalid(path, ": two arrays are named '", name, "'");
  order.push_back(std::move(name));
  position += total;
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> NpzReader::packed(const Member &member, const std::string &name) const {
  std::string_view text = file.text();
  if (member.localHeader > text.size() || text.size() - member.localHeader < kLocalHeaderBytes ||
      load<uint32_t>(text, member.localHeader) != kLocalHeader)
    return invalid(name, ": damaged zip header");
  std::string_view rest = text.substr(member.localHeader);
  size_t skip = kLocalHeaderBytes + load<uint16_t>(rest, 26) + load<uint16_t>(rest, 28);
  if (skip > rest.size() || member.packedBytes > rest.size() - skip)
    return invalid(name, ": cut short");
  return rest.substr(skip, member.packedBytes);
}

absl::StatusOr<Array> NpzReader::read(const std::string &name) const {
  auto found = members.find(name);
  if (found == members.end())
    return absl::NotFoundError(cat(path, ": no array is named '", name, "'"));
  const Member &member = found->second;
  std::string label = cat(path, ": ", name);
  HONE_ASSIGN_OR_RETURN(std::string_view bytes, packed(member, label));
  std::string inflated;
  if (member.method == kDeflated) {
    if (member.bytes / kBestRatio > member.packedBytes)
      return invalid(label, ": damaged deflate data");
    inflated.resize(member.bytes);
    if (!inflateTo(bytes, inflated))
      return invalid(label, ": damaged deflate data");
    bytes = inflated;
  } else if (member.method != kStored) {
    return invalid(label, ": unsupported zip method ", member.method, "; supported: stored, deflated");
  }
  if (crcOf(bytes) != member.crc)
    return invalid(label, ": checksum mismatch");
  return parseNpy(bytes, label);
}

absl::StatusOr<NpzWriter> NpzWriter::create(const std::string &path) {
  NpzWriter writer;
  HONE_ASSIGN_OR_RETURN(writer.file, FileWriter::create(path));
  return writer;
}

absl::Status NpzWriter::add(const std::string &name, const Array &array) {
  std::string npy = npyHeader(array.dtype(), array.shape());
  std::string_view data(array.data(), static_cast<size_t>(array.bytes()));
  uint32_t crc = crcOf(data, crcOf(npy));
  uint64_t bytes = npy.size() + data.size(), offset = file.position();
  std::string fileName = name + ".npy";
  if (fileName.size() > 0xffff)
    return invalid("cannot write an array with a name of ", name.size(), " bytes");

  std::string common; // version needed to extract (4.5 knows zip64) … lengths: the same words in both headers
  store<uint16_t>(common, 45);
  store<uint16_t>(common, 0x800); // names are UTF-8
  store<uint16_t>(common, kStored);
  store<uint32_t>(common, 0x00210000); // 1 January 1980: the output depends on nothing but the arrays
  store<uint32_t>(common, crc);
  store<uint32_t>(common, kInZip64);
  store<uint32_t>(common, kInZip64);
  store<uint16_t>(common, static_cast<uint16_t>(fileName.size()));
  std::string sizes;
  store<uint64_t>(sizes, bytes);
  store<uint64_t>(sizes, bytes);

  std::string local;
  store<uint32_t>(local, kLocalHeader);
  local += common;
  store<uint16_t>(local, static_cast<uint16_t>(4 + sizes.size()));
  local += fileName;
  store<uint16_t>(local, kZip64Extra);
  store<uint16_t>(local, static_cast<uint16_t>(sizes.size()));
  local += sizes;

  store<uint32_t>(directory, kDirectoryEntry);
  store<uint16_t>(directory, 45);
  directory += common;
  store<uint16_t>(directory, static_cast<uint16_t>(4 + sizes.size() + sizeof offset));
  store<uint16_t>(directory, 0); // comment
  store<uint16_t>(directory, 0); // disk
  store<uint16_t>(directory, 0); // internal attributes
  store<uint32_t>(directory, 0); // external attributes
  store<uint32_t>(directory, kInZip64);
  directory += fileName;
  store<uint16_t>(directory, kZip64Extra);
  store<uint16_t>(directory, static_cast<uint16_t>(sizes.size() + sizeof offset));
  directory += sizes;
  store<uint64_t>(directory, offset);
  ++count;

  HONE_RETURN_IF_ERROR(file.write(local));
  HONE_RETURN_IF_ERROR(file.write(npy));
  return file.write(data);
}

absl::Status NpzWriter::commit() {
  uint64_t begin = file.position(), end64 = begin + directory.size();
  std::string tail = std::move(directory);
  store<uint32_t>(tail, kDirectoryEnd64);
  store<uint64_t>(tail, kDirectoryEnd64Bytes - 12);
  store<uint16_t>(tail, 45);
  store<uint16_t>(tail, 45);
  store<uint32_t>(tail, 0);
  store<uint32_t>(tail, 0);
  store<uint64_t>(tail, count);
  store<uint64_t>(tail, count);
  store<uint64_t>(tail, end64 - begin);
  store<uint64_t>(tail, begin);
  store<uint32_t>(tail, kDirectoryEnd64Locator);
  store<uint32_t>(tail, 0);
  store<uint64_t>(tail, end64);
  store<uint32_t>(tail, 1);
  store<uint32_t>(tail, kDirectoryEnd);
  store<uint16_t>(tail, 0);
  store<uint16_t>(tail, 0);
  store<uint16_t>(tail, 0xffff);
  store<uint16_t>(tail, 0xffff);
  store<uint32_t>(tail, kInZip64);
  store<uint32_t>(tail, kInZip64);
  store<uint16_t>(tail, 0);
  HONE_RETURN_IF_ERROR(file.write(tail));
  return file.commit();
}

} // namespace hone::io
