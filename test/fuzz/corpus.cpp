//===- corpus.cpp - fuzz target: corpora that drafts come from ----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The input is a corpus, whose header gets the checksum that belongs to it. Of one that opens, any text can be followed, and drafts have
// tokens of its vocabulary.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "speculate/corpus.h"
#include "MemoryFile.h"

#include <cstdlib>
#include <cstring>

static constexpr size_t kTokensPerDraft = 61;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace hone::speculate;
  std::vector<uint8_t> bytes(data, data + size);
  CorpusHeader header;
  if (size >= sizeof header) {
    std::memcpy(&header, data, sizeof header);
    header.headerCrc = crcOfHeader(header);
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  hone::fuzz::MemoryFile file(bytes.data(), bytes.size());
  auto corpus = Corpus::open(file.path());
  if (!corpus.ok())
    return 0;
  CorpusDrafter drafter(*corpus);
  for (size_t i = 0; i < size; ++i) {
    int64_t token = data[i] % ((*corpus)->vocabulary() + 1);
    drafter.append({&token, 1});
    if (i % kTokensPerDraft != 0) // drafts take longer than tokens
      continue;
    for (const hone::speculate::Draft &draft : {drafter.draft(16), drafter.draftTree(16)})
      for (int64_t drafted : draft.tokens)
        if (drafted < 0 || drafted >= (*corpus)->vocabulary())
          std::abort();
  }
  return 0;
}
