//===- MemoryFile.h - a fuzzer's bytes as a file that can be opened by name --------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For readers that map files.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TEST_FUZZ_MEMORYFILE_H
#define HONE_TEST_FUZZ_MEMORYFILE_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::fuzz {

/// A file in memory that holds the given bytes and lives as long as the object.
class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : descriptor(memfd_create("fuzz", 0)) {
    if (descriptor < 0 || write(descriptor, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  MemoryFile(const MemoryFile &) = delete;
  ~MemoryFile() { close(descriptor); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

private:
  int descriptor;
};

} // namespace hone::fuzz

#endif // HONE_TEST_FUZZ_MEMORYFILE_H
