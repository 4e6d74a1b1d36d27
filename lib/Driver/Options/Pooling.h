// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sentence embeddings of an encoder.

#ifndef HONE_LIB_DRIVER_OPTIONS_POOLING_H
#define HONE_LIB_DRIVER_OPTIONS_POOLING_H

#include "OptionSet.h"
#include "hone/Conversion/Pooling.h"

namespace hone {

struct PoolingOptions {
  std::string pooling; // one of listPoolings(), or empty
  bool normalizes = false;
  std::optional<int64_t> mostTokens; // of a text that is embedded
  std::string folder; // of Sentence Transformers, whose files say these where `pooling` is empty; or empty

  void declare(OptionSet &set) {
    set.add("pooling", pooling, "KIND",
            "Let an encoder embed texts: the artefact gets an entry 'embed', with the vectors of tokens pooled by cls, "
            "mean, max, "
            "mean_sqrt_len_tokens, weightedmean or lasttoken (default: what modules.json of FOLDER says)")
        .oneOf(listPoolings());
    set.add("normalize", normalizes, "Divide embeddings by their L2 norm").needs("--pooling", [this] {
      return !pooling.empty();
    });
    set.add("most-tokens", mostTokens, "N",
            "Tokens that a text is cut to before it is embedded (default: none are cut)")
        .upTo()
        .needs("--pooling", [this] { return !pooling.empty(); });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_POOLING_H
