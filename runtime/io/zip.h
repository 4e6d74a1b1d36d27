// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words of the zip format (PKWARE APPNOTE 6.3.9, with zip64) that reader and writer share.

#ifndef HONE_RUNTIME_IO_ZIP_H
#define HONE_RUNTIME_IO_ZIP_H

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <zlib.h>

namespace hone::io::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
inline constexpr uint32_t kDirectoryEnd64 = 0x06064b50, kDirectoryEnd64Locator = 0x07064b50;
inline constexpr size_t kLocalHeaderBytes = 30, kDirectoryEntryBytes = 46, kDirectoryEndBytes = 22, kLocatorBytes = 20;
inline constexpr size_t kDirectoryEnd64Bytes = 56, kLongestComment = 65535;
inline constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Extra = 1;
inline constexpr uint32_t kInZip64 = 0xffffffff; // "look in the zip64 extra field"
inline constexpr uint64_t kBestRatio = 1032;     // deflate cannot shrink further, so a larger claim is a lie

} // namespace hone::io::zip

#endif // HONE_RUNTIME_IO_ZIP_H
