//===- inputs.cpp - fuzz target: arrays as the inputs of a call ---------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone run --inputs` does with an archive before an entry is called: its arrays become the inputs of a signature with
// symbols, fixed sizes, numbers of rows and types that numpy does not have. What is bound can be read to its last byte.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"

#include "cli/arrays.h"

#include <numeric>

static hone::io::EntryInfo makeEntry() {
  using hone::io::Dim;
  Dim batch = Dim::symbolic("batch"), sequence = Dim::symbolic("sequence");
  hone::io::EntryInfo entry;
  entry.name = "main";
  entry.inputs = {{"tokens", HONE_I64, {batch, sequence}, {}},
                  {"mask", HONE_BOOL, {batch, Dim::symbolic("")}, {}},
                  {"x", HONE_BF16, {batch, sequence, Dim::fixed(3)}, {}},
                  {"scale", HONE_F32, {}, {}}};
  entry.inputs[0].rows = 8;
  entry.limits = {{{"sequence"}, false, 16, "places"}};
  return entry;
}

static unsigned sumOf(const hone_tensor &tensor) {
  const auto *bytes = static_cast<const unsigned char *>(tensor.data);
  int64_t count = hone::io::elementCount(tensor) * hone::io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
  return std::accumulate(bytes, bytes + count, 0u);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const hone::io::EntryInfo entry = makeEntry();
  hone::fuzz::MemoryFile file(data, size);
  absl::StatusOr<hone::io::NpzReader> reader = hone::io::NpzReader::open(file.path());
  if (!reader.ok())
    return 0;
  absl::StatusOr<hone::cli::NamedArrays> arrays = hone::cli::readInputs(*reader, "", entry);
  if (!arrays.ok())
    return 0;
  absl::StatusOr<hone::rt::BoundInputs> bound = hone::rt::bindInputs(entry, hone::cli::viewsOf(*arrays));
  if (!bound.ok())
    return 0;
  static volatile unsigned sum;
  for (const hone_tensor &tensor : bound->tensors)
    sum = sum + sumOf(tensor);
  return 0;
}
