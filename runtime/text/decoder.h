// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "decoder" of tokenizer.json as a stream. Decoding a whole sequence is the same stream run to its end, so that
// streamed text and decoded text cannot differ.

#ifndef HONE_RUNTIME_TEXT_DECODER_H
#define HONE_RUNTIME_TEXT_DECODER_H

#include "text/json_reader.h"

#include <memory>

namespace hone::text {

/// One stage of a decoder at work. A token arrives as any number of texts, each valid UTF-8, and an end.
class DecodeStage {
public:
  virtual ~DecodeStage() = default;
  virtual absl::Status text(std::string_view part) = 0;
  virtual absl::Status endToken() = 0;
  /// No token follows: hands on whatever was held back.
  virtual absl::Status finish() = 0;
};

/// Immutable; outlives the stages it opens.
class Decoder {
public:
  virtual ~Decoder() = default;
  /// A new stage, or chain of stages, that feeds `next`.
  virtual std::unique_ptr<DecodeStage> open(std::unique_ptr<DecodeStage> next) const = 0;

  /// The decoder that an object of tokenizer.json describes.
  static absl::StatusOr<std::unique_ptr<Decoder>> read(const JsonObject &object);
  /// What a tokenizer.json without a decoder means: tokens with a space between.
  static std::unique_ptr<Decoder> joining();
};

/// The last stage: appends to a string.
std::unique_ptr<DecodeStage> appendTo(std::string &output);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_DECODER_H
