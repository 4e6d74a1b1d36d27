// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images: the choice among the entries of a fatbin.
//
// A fatbin is a header of 16 bytes (magic, version, size of the header, size of what follows) and entries, each of a header and its
// bytes. The layout of an entry's header is not documented; what is read here is what "fatbinary" of CUDA 11 to 13 writes.

#include "driver/image.h"

#include "ptx/module.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace hone::emulation {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr std::array<unsigned char, 4> kElfMagic{0x7f, 'E', 'L', 'F'};
constexpr uint16_t kPtxKind = 1;
constexpr uint16_t kElfKind = 2;
// Bits of an entry's flags for LZ4 and for Zstandard.
constexpr uint64_t kCompressed = 0x2000 | 0x8000;

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t bytes;
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t headerBytes;
  uint64_t bytes;
  uint32_t compressedBytes;
  uint32_t optionsOffset;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint32_t nameOffset;
  uint32_t nameBytes;
  uint64_t flags;
};

/// Names what only the emulation cannot load.
Result refuse(const char *why) {
  std::fprintf(stderr, "emulated driver: %s\n", why);
  return kNotSupported;
}

/// PTX for sm_90a is for that chip alone, other PTX for newer ones too.
bool runsOn(PtxTarget target, int chip) {
  return target.exact ? target.architecture == chip : target.architecture <= chip;
}

struct Choice {
  std::string_view ptx;
  int architecture = 0;
  bool cubin = false;      // a driver would take it before any PTX
  bool compressed = false; // there is PTX that cannot be read
};

Choice choose(const std::byte *at, uint64_t size, int chip) {
  Choice choice;
  const std::byte *end = at + size;
  while (end - at >= static_cast<ptrdiff_t>(sizeof(EntryHeader))) {
    EntryHeader entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.headerBytes < sizeof entry || entry.bytes > static_cast<uint64_t>(end - at) - entry.headerBytes)
      break;
    auto architecture = static_cast<int>(entry.architecture);
    bool sameMajor = architecture / 10 == chip / 10;
    if (entry.kind == kElfKind && sameMajor && architecture <= chip)
      choice.cubin = true;
    std::string_view bytes(reinterpret_cast<const char *>(at) + entry.headerBytes, entry.bytes);
    if (entry.kind == kPtxKind && architecture <= chip && (entry.flags & kCompressed) != 0)
      choice.compressed = true;
    else if (entry.kind == kPtxKind && architecture > choice.architecture && runsOn(targetOf(bytes), chip))
      choice = {bytes, architecture, choice.cubin, choice.compressed};
    at += entry.headerBytes + entry.bytes;
  }
  return choice;
}

/// The first driver that knows a version of the PTX language, from the table "PTX release history" of the PTX ISA.
int driverFor(int version) {
  struct Row {
    int ptx;
    int driver;
  };
  constexpr Row kRows[] = {{70, 11000}, {71, 11010}, {72, 11020}, {73, 11030}, {74, 11040}, {75, 11050}, {76, 11060},
                           {77, 11070}, {78, 11080}, {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
                           {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}};
  for (const Row &row : kRows)
    if (version <= row.ptx)
      return row.driver;
  return std::end(kRows)[-1].driver + 10;
}

Result checkVersion(std::string_view text, int driverVersion) {
  size_t at = text.find(".version");
  int major = 0;
  int minor = 0;
  if (at == std::string_view::npos ||
      std::sscanf(std::string(text.substr(at, 32)).c_str(), ".version %d.%d", &major, &minor) != 2)
    return kInvalidPtx;
  return driverFor(10 * major + minor) > driverVersion ? kUnsupportedPtxVersion : kSuccess;
}

Result selectFromFatbin(const std::byte *image, int chip, std::string &text) {
  FatbinHeader header;
  std::memcpy(&header, image, sizeof header);
  Choice choice = choose(image + header.headerBytes, header.bytes, chip);
  if (choice.ptx.empty() && choice.compressed)
    return refuse("cannot read compressed PTX of a fatbin");
  if (choice.ptx.empty() && choice.cubin)
    return refuse("expected a fatbin with PTX beside its cubin for the chip, but there is none");
  if (choice.ptx.empty())
    return kNoBinaryForGpu;
  text = choice.ptx.substr(0, choice.ptx.find('\0'));
  return kSuccess;
}

} // namespace

Result selectPtx(const void *image, int chip, int driverVersion, std::string &text) {
  const auto *bytes = static_cast<const std::byte *>(image);
  uint32_t magic;
  std::memcpy(&magic, bytes, sizeof magic);
  if (std::memcmp(bytes, kElfMagic.data(), kElfMagic.size()) == 0)
    return refuse("cannot run a cubin: only PTX is emulated");
  if (magic == kWrapperMagic) {
    const void *inner;
    std::memcpy(&inner, bytes + 8, sizeof inner);
    return selectPtx(inner, chip, driverVersion, text);
  }
  bool fatbin = magic == kFatbinMagic;
  if (fatbin) {
    if (Result result = selectFromFatbin(bytes, chip, text); result != kSuccess)
      return result;
  } else {
    text = static_cast<const char *>(image);
    if (text.find(".version") == std::string::npos)
      return kInvalidImage;
  }
  if (Result result = checkVersion(text, driverVersion); result != kSuccess)
    return result;
  if (!runsOn(targetOf(text), chip))
    return fatbin ? kNoBinaryForGpu : kInvalidPtx;
  return kSuccess;
}

} // namespace hone::emulation
