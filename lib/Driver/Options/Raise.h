// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What may change while a model is raised.

#ifndef HONE_LIB_DRIVER_OPTIONS_RAISE_H
#define HONE_LIB_DRIVER_OPTIONS_RAISE_H

#include "OptionSet.h"
#include "hone/Conversion/Raising.h"

namespace hone {

struct RaiseOptions {
  RaisingOptions passes;

  void declare(OptionSet &set) {
    set.add("keep-activation-rounding", passes.keepRoundings,
            "Round activations wherever the file does, inside of attention, norms and MLPs too, which then stay apart");
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_RAISE_H
