// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few files, each for many weights: the system counts how many a process maps.

#include "hone/Dialect/Hone/ScratchBytes.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/io/pages.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace hone {

static constexpr size_t kAlignment = 64;
/// What is smaller stays in memory: a page each would be more.
static constexpr uint64_t kLeastBytes = uint64_t(16) << 10;
/// Where the bytes of a weight begin, so that none leave memory with their neighbours.
static constexpr uint64_t kPage = uint64_t(4) << 10;
/// Of a file; each is twice as large as the one before.
static constexpr uint64_t kLeastFile = uint64_t(4) << 20, kMostFile = uint64_t(256) << 20;

ScratchBytes &ScratchBytes::get(MLIRContext *context) {
  return *context->getLoadedDialect<HoneDialect>()->getRegisteredInterface<ScratchBytes>();
}

void ScratchBytes::spillBeside(std::string other) {
  std::scoped_lock lock(mutex);
  path = std::move(other);
  used = files.empty() ? 0 : files.back().size(); // the next one lies there
}

/// Room for `size` bytes, or null.
char *ScratchBytes::find(uint64_t size) {
  uint64_t before = files.empty() ? 0 : files.back().size();
  if (used + size > before) {
    auto file = io::ScratchFile::create(path, std::max(size, std::clamp(2 * before, kLeastFile, kMostFile)));
    if (!file.ok())
      return nullptr;
    files.push_back(std::move(*file));
    used = 0;
  }
  char *place = reinterpret_cast<char *>(files.back().data()) + used;
  used += (size + kPage - 1) / kPage * kPage;
  return place;
}

AsmResourceBlob ScratchBytes::copy(ArrayRef<char> bytes) {
  if (bytes.size() >= kLeastBytes) {
    std::scoped_lock lock(mutex);
    if (char *place = path.empty() ? nullptr : find(bytes.size())) {
      constexpr size_t piece = size_t(16) << 20; // of memory, while it is copied
      for (size_t at = 0; at < bytes.size(); at += piece) {
        size_t count = std::min(piece, bytes.size() - at);
        std::memcpy(place + at, bytes.data() + at, count);
        io::releasePages(place + at, count);
      }
      return UnmanagedAsmResourceBlob::allocateWithAlign({place, bytes.size()}, kAlignment);
    }
  }
  return HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, kAlignment);
}

bool ScratchBytes::holds(ArrayRef<char> bytes) const {
  std::scoped_lock lock(mutex);
  return llvm::any_of(files, [&](const io::ScratchFile &file) {
    const auto *begin = reinterpret_cast<const char *>(file.data());
    return bytes.begin() >= begin && bytes.end() <= begin + file.size();
  });
}

} // namespace hone
