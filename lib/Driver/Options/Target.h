// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code is made for.

#ifndef HONE_LIB_DRIVER_OPTIONS_TARGET_H
#define HONE_LIB_DRIVER_OPTIONS_TARGET_H

#include "OptionSet.h"
#include "hone/Target/Optimise.h"
#include "hone/io/manifest.h"

namespace hone {

struct TargetOptions {
  std::string device = "cpu"; // or cuda
  std::string cpu = "native"; // or LLVM's name of one
  std::string chip, ptxas;    // of the device cuda: what kernels are made for, and CUDA's assembler or empty
  std::string sanitize;       // address, or empty
  int64_t ranks = 1;          // processes that the model is split over

  bool isCuda() const { return device == "cuda"; }
  Sanitizer getSanitizer() const { return sanitize.empty() ? Sanitizer::None : Sanitizer::Address; }

  void declare(OptionSet &set) {
    set.add("mcpu", cpu, "CPU", "CPU to make code for: native (default) or LLVM's name of one");
    declareDevice(set);
    set.add("sanitize", sanitize, "KIND", "Check accesses to memory in generated code: address (slow)")
        .oneOf({"address"})
        .needs("--target=cpu", [this] { return !isCuda(); });
    set.add("tensor-parallel", ranks, "N",
            "Split the model over N processes, which run the artefact together by MPI (default: 1)")
        .upTo(io::kMostRanks);
  }

  /// Of commands that run what they compile, too.
  void declareDevice(OptionSet &set) {
    set.add("target", device, "DEVICE", "Device to make code for: cpu (default) or cuda")
        .oneOf({"cpu", "cuda"})
        .check([this] {
          return isCuda() && chip.empty() ? "expected --chip with --target=cuda: sm_80, sm_86, sm_89, sm_90 or sm_100"
                                          : "";
        });
    set.add("chip", chip, "CHIP", "With --target=cuda, the chip: sm_80, sm_86, sm_89, sm_90 or sm_100")
        .needs("--target=cuda", [this] { return isCuda(); });
    set.add("ptxas", ptxas, "FILE", "With --target=cuda, CUDA's assembler (default: that of the build)")
        .needs("--target=cuda", [this] { return isCuda(); });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_TARGET_H
