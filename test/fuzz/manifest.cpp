//===- manifest.cpp - fuzz target: manifest.json ------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What parses is written and parsed again, and says the same.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/io/manifest.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  absl::StatusOr<hone::io::Manifest> manifest = hone::io::parseManifest(text, "fuzz");
  if (!manifest.ok())
    return 0;
  std::string written = hone::io::manifestText(*manifest);
  absl::StatusOr<hone::io::Manifest> again = hone::io::parseManifest(written, "again");
  if (!again.ok() || hone::io::manifestText(*again) != written)
    std::abort();
  return 0;
}
