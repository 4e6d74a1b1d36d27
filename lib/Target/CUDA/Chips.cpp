// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips that code is generated for.

#include "hone/Target/CUDA.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hone {

/// Ampere (server, desktop), Ada, Hopper, Blackwell.
static constexpr CudaChip kChips[] = {
    {"sm_80", "ptx80"}, {"sm_86", "ptx80"}, {"sm_89", "ptx80"}, {"sm_90", "ptx80"}, {"sm_100", "ptx86"}};

FailureOr<CudaChip> CudaChip::get(StringRef name, std::string &error) {
  auto names = llvm::map_range(kChips, [](const CudaChip &chip) { return chip.name; });
  const CudaChip *known = llvm::find_if(kChips, [&](const CudaChip &chip) { return chip.name == name; });
  if (known != std::end(kChips))
    return *known;
  error = "unsupported chip '" + name.str() + "'; supported: " + llvm::join(names, ", ");
  return failure();
}

} // namespace hone
