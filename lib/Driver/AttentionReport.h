// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What SpargeAttention reads with the thresholds of each KV head, as a page.

#ifndef HONE_LIB_DRIVER_ATTENTIONREPORT_H
#define HONE_LIB_DRIVER_ATTENTIONREPORT_H

#include "hone/cli/attention_thresholds.h"

#include "llvm/ADT/ArrayRef.h"

namespace hone {

/// A page of HTML that needs nothing else: for each layer and KV head the share of the blocks that it reads, its error
/// and its thresholds, and the blocks that it reads in the last window. `block` are keys of a block.
std::string makeAttentionPage(const std::string &model, llvm::ArrayRef<cli::LayerThresholds> layers, int64_t block);

} // namespace hone

#endif // HONE_LIB_DRIVER_ATTENTIONREPORT_H
