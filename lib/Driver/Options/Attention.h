// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which keys the attention of a compiled model reads. What the pass takes is bound to its own options.

#ifndef HONE_LIB_DRIVER_OPTIONS_ATTENTION_H
#define HONE_LIB_DRIVER_OPTIONS_ATTENTION_H

#include "OptionSet.h"
#include "hone/Transforms/Passes.h"

namespace hone {

struct AttentionOptions {
  std::string pattern; // sinks-window, or empty: that of the model
  SparsifyAttentionOptions pass;

  bool isAsked() const { return !pattern.empty(); }

  void declare(OptionSet &set) {
    auto isSparse = [this] { return isAsked(); };
    set.add("attention", pattern, "PATTERN",
            "Let causal attention read a part of the keys: sinks-window, the first of the text and those shortly "
            "before each token")
        .oneOf({"sinks-window"});
    set.add("attention-sinks", pass.sinks, "N",
            "With --attention=sinks-window, how many keys are the first (default: 64)")
        .needs("--attention", isSparse)
        .check([this] {
          return pass.sinks < 0 || pass.sinks > kMostListedKeys
                     ? "expected --attention-sinks to be a whole number from 0 to " + std::to_string(kMostListedKeys) +
                           ", but got " + std::to_string(pass.sinks)
                     : "";
        });
    set.add("attention-window", pass.window, "N",
            "With --attention=sinks-window, how many keys up to its own a token sees (default: 1024)")
        .needs("--attention", isSparse)
        .upTo(kMostListedKeys);
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_ATTENTION_H
