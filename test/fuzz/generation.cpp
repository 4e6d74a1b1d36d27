// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fuzz target: generation_config.json. What it says is never a token below 0, and a place of a text's beginning has one at least.

#include "hone/io/generation.h"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto config = hone::io::parseGenerationConfig(text, "fuzz");
  if (!config.ok())
    return 0;
  auto areTokens = [](const std::vector<int64_t> &ids) {
    return std::ranges::all_of(ids, [](int64_t id) { return id >= 0; });
  };
  const hone::io::GenerationInfo &info = config->info;
  bool isRight = areTokens(info.endTokens) && areTokens(info.rules.never) && areTokens(info.rules.notFirst) &&
                 std::ranges::all_of(info.startTokens, [&](const auto &ids) { return !ids.empty() && areTokens(ids); });
  if (!isRight)
    std::abort();
  return 0;
}
