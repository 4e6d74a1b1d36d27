// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models before a decoder: an encoder, and what looks embeddings up.

#ifndef HONE_LIB_DRIVER_OPTIONS_ENCODER_H
#define HONE_LIB_DRIVER_OPTIONS_ENCODER_H

#include "OptionSet.h"
#include "Options/Output.h"

namespace hone {

struct EncoderOptions {
  std::string encoder;                 // the encoder's file, or empty
  std::string crossAttention;          // that of the decoder without a past, or empty
  std::string embedding;               // that of the model before a decoder that reads embeddings, or empty
  std::optional<int64_t> featureToken; // that features of the encoder take the place of; otherwise that of config.json

  bool isAsked() const { return !encoder.empty(); }

  /// Files are put together as they are imported, before any phase that a compilation can begin with.
  static OptionRow::Check beforePhases(const PhaseOptions &phases, llvm::StringRef option) {
    return [&phases, option] {
      return phases.startFrom.empty()
                 ? std::string()
                 : ("expected no --start-from with --" + option + ", but got --start-from=").str() + phases.startFrom;
    };
  }

  void declare(OptionSet &set, const PhaseOptions &phases) {
    set.add("encoder", encoder, "FILE",
            "The encoder of the model, a decoder with cross-attention, or with --embedding that of images or audio: "
            "the artefact gets an "
            "entry 'encode'")
        .check(beforePhases(phases, "encoder"));
    set.add("cross-attention", crossAttention, "FILE",
            "The decoder without a past, where it is a file of its own: it computes keys and values of cross-attention")
        .needs("--encoder", [this] { return isAsked(); })
        .check([this] { return embedding.empty() ? "" : "expected no --cross-attention with --embedding"; });
    set.add("embedding", embedding, "FILE",
            "The model that makes embeddings of token ids, before a decoder that reads 'inputs_embeds'")
        .check(beforePhases(phases, "embedding"));
    set.add("feature-token", featureToken, "ID",
            "The token of prompts that features of --encoder take the place of (default: that of FOLDER's config.json)")
        .needs("--encoder and --embedding", [this] { return isAsked() && !embedding.empty(); })
        .check([this] {
          return *featureToken < 0 ? "expected a token with --feature-token, but got " + std::to_string(*featureToken)
                                   : "";
        });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_ENCODER_H
