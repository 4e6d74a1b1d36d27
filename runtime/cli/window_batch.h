// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step with a loss reads: windows of tokens, and the token that follows each.

#ifndef HONE_CLI_WINDOW_BATCH_H
#define HONE_CLI_WINDOW_BATCH_H

#include "core/module.h"
#include "hone/cli/tune.h"
#include "hone/io/array.h"

namespace hone::cli {

/// The inputs `[batch, context]` of an entry of a language model that `hone-differentiate` gave a loss.
class WindowBatch {
public:
  /// `numbers` are inputs of the entry beside tokens and targets. Fails where it has others, where `data` has tokens outside its vocabulary,
  /// and where its sizes are other ones.
  static absl::StatusOr<WindowBatch> create(const io::EntryInfo &entry, const TuningData &data, int64_t batch,
                                            std::span<const std::string_view> numbers);

  /// Makes `window`, of one token more than the context, row number `row`.
  void set(int64_t row, std::span<const int64_t> window);

  /// The tokens, the targets, and then `numbers` in their order, scalars of f32.
  std::vector<rt::NamedTensor> inputs(std::span<const float> numbers);

private:
  std::string name; // of the input that tokens are
  std::vector<std::string> numberNames;
  io::Array tokens, targets;
  std::vector<io::Array> scalars;
};

} // namespace hone::cli

#endif // HONE_CLI_WINDOW_BATCH_H
