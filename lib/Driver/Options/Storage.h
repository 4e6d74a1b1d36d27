// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How weights and state are stored where nothing else is said of them.

#ifndef HONE_LIB_DRIVER_OPTIONS_STORAGE_H
#define HONE_LIB_DRIVER_OPTIONS_STORAGE_H

#include "Options/Target.h"

namespace hone {

struct StorageOptions {
  std::string weights; // type to store weight matrices in (f32, f16, bf16), or empty for the model's
  std::string
      uses; // what forms of weights are to be fast for: decode, verify, prefill and numbers of rows, with commas; or empty
  bool force = false; // whether weights are stored in the forms that were asked for where those are slower, too

  bool areHalves() const { return !weights.empty() && weights != "f32"; }

  void declare(OptionSet &set) {
    set.add("weights", weights, "TYPE",
            "Type to store weight matrices in: f32 (default), f16 or bf16; f32 leaves a model of 16 bits as it is")
        .oneOf({"bf16", "f16", "f32"});
    set.add(
        "tune-for", uses, "USES",
        "What 2:4 weights are to be faster for than with their zeros: decode, verify, prefill or numbers of tokens at "
        "once, with commas (default: decode, and prefill for models without state)");
    set.add("force", force, "Store 2:4 weights without their zeros also where that is slower");
  }
};

struct StateOptions {
  std::string cache; // type to keep keys and values of sessions in, model for the model's own, or empty: as the weights

  void declare(OptionSet &set, const TargetOptions &target) {
    set.add("kv-cache", cache, "TYPE",
            "Type to keep keys and values of sessions in: f32, f16, bf16, int8, int4, or model for the model's own "
            "(default: that of --weights; bf16 with --quantize; else the model's, which f32 leaves as it is too); "
            "bf16 is also what attention without a state may multiply in")
        .oneOf({"bf16", "f16", "f32", "int8", "int4", "model"})
        .check([this, &target]() -> std::string {
          if (!target.isCuda() || (cache != "int8" && cache != "int4"))
            return "";
          return "unsupported --kv-cache=" + cache + " with --target=cuda; supported: f32, f16, bf16, model";
        });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_STORAGE_H
