//===- npz.cpp - fuzz target: archives of arrays ------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opens the archive and reads every member that its directory names.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"

#include "hone/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  absl::StatusOr<hone::io::NpzReader> reader = hone::io::NpzReader::open(file.path());
  if (!reader.ok())
    return 0;
  for (const std::string &name : reader->names())
    (void)reader->read(name);
  return 0;
}
