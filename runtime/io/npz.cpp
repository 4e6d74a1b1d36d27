// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of .npz, a zip archive of .npy files. The central directory is believed
// for sizes and offsets after they are checked against the file; every member is checked against its CRC.

#include "hone/io/npy.h"

#include "zip.h"

#include <algorithm>
#include <cstring>

namespace hone::io {
namespace {

using namespace zip;

template <typename Number> Number load(std::string_view bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
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

} // namespace hone::io
