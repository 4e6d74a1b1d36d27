// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "model" of tokenizer.json: turns one word into token ids.

#ifndef HONE_RUNTIME_TEXT_MODEL_H
#define HONE_RUNTIME_TEXT_MODEL_H

#include "text/vocabulary.h"

#include <memory>

namespace hone::text {

/// What one thread needs of a model between words; each model derives its own.
class ModelScratch {
public:
  virtual ~ModelScratch() = default;
};

/// Immutable and usable from several threads with a scratch each.
class Model {
public:
  virtual ~Model() = default;

  /// The model that an object of tokenizer.json describes.
  static absl::StatusOr<std::unique_ptr<Model>> read(const JsonObject &object);

  virtual std::unique_ptr<ModelScratch> makeScratch() const { return std::make_unique<ModelScratch>(); }

  /// Appends the ids of a word that is not empty. `scratch` comes from makeScratch() of this model.
  virtual absl::Status tokenize(std::string_view word, ModelScratch &scratch, std::vector<int32_t> &ids) const = 0;

  const Vocabulary &vocabulary() const { return words; }

protected:
  explicit Model(Vocabulary vocabulary) : words(std::move(vocabulary)) {}

  /// The id of `unknownToken`, or why a word without tokens cannot be expressed.
  absl::StatusOr<int32_t> unknownId(const std::string &unknownToken) const;

private:
  Vocabulary words;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_MODEL_H
