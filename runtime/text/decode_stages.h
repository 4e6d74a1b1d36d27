// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the stages of decoders have in common.

#ifndef HONE_RUNTIME_TEXT_DECODE_STAGES_H
#define HONE_RUNTIME_TEXT_DECODE_STAGES_H

#include "text/decoder.h"

namespace hone::text {

/// A stage that needs tokens whole. Reports each to token().
class TokenStage : public DecodeStage {
public:
  explicit TokenStage(std::unique_ptr<DecodeStage> next) : next(std::move(next)) {}

  absl::Status text(std::string_view part) final {
    held += part;
    return absl::OkStatus();
  }
  absl::Status endToken() final {
    absl::Status status = token(held);
    held.clear();
    return status;
  }
  absl::Status finish() override { return next->finish(); }

protected:
  virtual absl::Status token(std::string &whole) = 0;

  absl::Status emit(std::string_view whole) {
    HONE_RETURN_IF_ERROR(next->text(whole));
    return next->endToken();
  }

  std::unique_ptr<DecodeStage> next;

private:
  std::string held;
};

/// Replaces every occurrence of `from`, which is not empty.
void replaceAll(std::string &text, std::string_view from, std::string_view to);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_DECODE_STAGES_H
