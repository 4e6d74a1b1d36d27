// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "pre_tokenizer" of tokenizer.json: cuts text into the words that the model tokenizes one by one.

#ifndef HONE_RUNTIME_TEXT_PRE_TOKENIZER_H
#define HONE_RUNTIME_TEXT_PRE_TOKENIZER_H

#include "text/json_reader.h"
#include "text/regex.h"

#include "absl/functional/function_ref.h"

#include <deque>
#include <memory>
#include <string>

namespace hone::text {

/// A stretch of text; `atStart` says that it begins where the input began.
struct Piece {
  std::string_view text;
  bool atStart = false;
};

/// What one thread needs to pre-tokenize: the memory of the regular expressions and strings to write into.
class PreTokenizerScratch {
public:
  RegexScratch regex;

  /// An empty string, borrowed until the object dies; borrowed and given back like a stack.
  class Buffer {
  public:
    explicit Buffer(PreTokenizerScratch &scratch) : scratch(scratch) {
      if (scratch.used == scratch.buffers.size())
        scratch.buffers.emplace_back();
      string = &scratch.buffers[scratch.used++];
      string->clear();
    }
    ~Buffer() { --scratch.used; }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    std::string &operator*() const { return *string; }
    std::string *operator->() const { return string; }

  private:
    PreTokenizerScratch &scratch;
    std::string *string;
  };

private:
  std::deque<std::string> buffers;
  size_t used = 0;
};

/// Immutable and usable from several threads with a scratch each.
class PreTokenizer {
public:
  using Sink = absl::FunctionRef<absl::Status(Piece)>;

  virtual ~PreTokenizer() = default;

  /// Hands the pieces of `piece`, none of them empty, to `sink` from left to right. A piece lives until `sink` returns.
  virtual absl::Status apply(Piece piece, PreTokenizerScratch &scratch, Sink sink) const = 0;

  /// The pre-tokenizer that an object of tokenizer.json describes.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> read(const JsonObject &object);
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_PRE_TOKENIZER_H
