// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What instructions of asynchronous copies share.

#pragma once

#include "ptx/decoder.h"
#include "ptx/warp.h"

namespace hone::emulation {

/// Does all copies that the lanes of the mask have begun.
void waitForCopies(Warp &warp, const Inst &inst, uint32_t mask);

/// cp.async.mbarrier.arrive, cp.async.bulk and cp.async.bulk.tensor, in mbarrier.cpp, bulk_copy.cpp and tensor_copy.cpp.
void decodeCopyArrival(Decoder &decoder, Statement &statement);
void decodeBulkCopy(Decoder &decoder, Statement &statement);
void decodeTensorCopy(Decoder &decoder, Statement &statement);

} // namespace hone::emulation
