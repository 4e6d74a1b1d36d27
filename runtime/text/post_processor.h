// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "post_processor" of tokenizer.json, as far as ids go: which special tokens stand before and after a text.

#ifndef HONE_RUNTIME_TEXT_POST_PROCESSOR_H
#define HONE_RUNTIME_TEXT_POST_PROCESSOR_H

#include "text/json_reader.h"

namespace hone::text {

/// Ids that stand before a text and ids that stand after it.
class PostProcessor {
public:
  /// Reads ByteLevel (no ids), TemplateProcessing (its "single"), BertProcessing, RobertaProcessing and a Sequence of
  /// these in which at most one adds ids.
  static absl::StatusOr<PostProcessor> read(const JsonObject &object);

  std::vector<int32_t> apply(std::vector<int32_t> ids, bool addSpecialTokens) const;

private:
  static absl::StatusOr<PostProcessor> readTemplate(const JsonObject &object);
  static absl::StatusOr<PostProcessor> readPair(const JsonObject &object);
  static absl::StatusOr<PostProcessor> readSequence(const JsonObject &object);
  bool isPlain() const { return before.empty() && after.empty(); }

  std::vector<int32_t> before, after;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_POST_PROCESSOR_H
