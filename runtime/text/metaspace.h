// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fields of Metaspace, which is a pre-tokenizer and a decoder.

#ifndef HONE_RUNTIME_TEXT_METASPACE_H
#define HONE_RUNTIME_TEXT_METASPACE_H

#include "text/json_reader.h"

namespace hone::text {

struct MetaspaceOptions {
  enum class Prepend { Always, First, Never };

  std::string replacement; // one character, "▁" as a rule, that stands for a space
  Prepend prepend = Prepend::Always;
  bool split = true;

  /// Reads `prepend_scheme` and the older `add_prefix_space`.
  static absl::StatusOr<MetaspaceOptions> read(const JsonObject &object);
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_METASPACE_H
