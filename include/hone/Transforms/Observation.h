// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an instrumented module shows: the sites of its `hone.observe`, and the layers that they belong to.

#ifndef HONE_TRANSFORMS_OBSERVATION_H
#define HONE_TRANSFORMS_OBSERVATION_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace hone {

/// A site: rows of `width` elements, which linear layers multiply with `weights` (symbols of parameters, or what
/// getExpertName makes of them, in the order of their first layers). `scales` are what passes have divided its channels by
/// (`hone.channel_scales`), or empty.
struct ObservedSite {
  int64_t width = 0;
  std::vector<std::string> weights;
  std::vector<float> scales = {};
};

/// What a site calls the matrix of one of the experts in `weight`, a symbol of a parameter.
inline std::string getExpertName(llvm::StringRef weight, int64_t expert) {
  return (weight + "[" + llvm::Twine(expert) + "]").str();
}

/// The sites of `module` by their numbers, as `hone-observe-inputs` left it.
std::vector<ObservedSite> listObservedSites(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_TRANSFORMS_OBSERVATION_H
