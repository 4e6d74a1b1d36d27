// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several drafters at once.

#ifndef HONE_RUNTIME_SPECULATE_COMBINED_DRAFTER_H
#define HONE_RUNTIME_SPECULATE_COMBINED_DRAFTER_H

#include "speculate/drafter.h"

#include <memory>

namespace hone::speculate {

/// Takes the draft of the longest match; of matches as long, that of the drafter that was named first (SAM-Decoding, Hu et al. 2025, with the
/// text's own automaton first). Draft::drafter says whose it is.
class CombinedDrafter : public Drafter {
public:
  explicit CombinedDrafter(std::vector<std::unique_ptr<Drafter>> drafters) : drafters(std::move(drafters)) {}

  void beginText() override;
  void append(std::span<const int64_t> tokens) override;
  Draft draft(int64_t most) const override;
  Draft draftTree(int64_t most) const override;

private:
  template <typename Propose> Draft chooseLongest(Propose propose) const;

  std::vector<std::unique_ptr<Drafter>> drafters;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_COMBINED_DRAFTER_H
