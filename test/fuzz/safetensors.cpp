//===- safetensors.cpp - fuzz target: weight files ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every tensor of a file that opens lies inside it.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"

#include "hone/io/safetensors.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  absl::StatusOr<hone::io::SafetensorsReader> reader = hone::io::SafetensorsReader::open(file.path());
  if (!reader.ok())
    return 0;
  for (const hone::io::StoredTensor &tensor : reader->tensors()) {
    uint64_t begin = reader->dataOffset() + tensor.offset;
    if (begin > size || tensor.bytes > size - begin || reader->find(tensor.name) == nullptr)
      std::abort();
    volatile uint8_t last = tensor.bytes ? reader->bytesOf(tensor)[tensor.bytes - 1] : 0;
    (void)last;
  }
  return 0;
}
