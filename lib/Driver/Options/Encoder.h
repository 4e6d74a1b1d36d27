// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An encoder before the model, which is its decoder.

#ifndef HONE_LIB_DRIVER_OPTIONS_ENCODER_H
#define HONE_LIB_DRIVER_OPTIONS_ENCODER_H

#include "OptionSet.h"
#include "Options/Output.h"

namespace hone {

struct EncoderOptions {
  std::string encoder;        // the encoder's file, or empty
  std::string crossAttention; // that of the decoder without a past, or empty

  bool isAsked() const { return !encoder.empty(); }

  void declare(OptionSet &set, const PhaseOptions &phases) {
    set.add("encoder", encoder, "FILE",
            "The encoder of the model, which is a decoder with cross-attention: the artefact gets an entry 'encode'")
        .check([&phases] {
          return phases.startFrom.empty()
                     ? ""
                     : "expected no --start-from with --encoder, but got --start-from=" + phases.startFrom;
        });
    set.add("cross-attention", crossAttention, "FILE",
            "The decoder without a past, where it is a file of its own: it computes keys and values of cross-attention")
        .needs("--encoder", [this] { return isAsked(); });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_ENCODER_H
