// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that ask for rewrites, as passes.

#ifndef HONE_LIB_DRIVER_REWRITES_H
#define HONE_LIB_DRIVER_REWRITES_H

#include "Compiler.h"
#include "hone/Compress/Pruning.h"

namespace hone {

/// `25%` or `0.25` as 0.25; nothing for what is no number.
std::optional<double> getShare(llvm::StringRef text);

/// `2:4` as a pattern of two of four; nothing for what is not two numbers.
std::optional<compress::NmPattern> getNmPattern(llvm::StringRef text);

/// Adds the pass that prunes as the options say, if they do. Fails as addRewrites does.
llvm::LogicalResult addPruning(const CompressionOptions &options, mlir::OpPassManager &pm, mlir::Location loc);

/// Adds the pass that scales channels before weights are rounded, where the method of the options does that. The model means the same after it.
void addChannelScaling(const CompileOptions &options, mlir::OpPassManager &pm);

/// Adds the passes that round weights as the options say, if they do.
void addRounding(const CompileOptions &options, mlir::OpPassManager &pm);

/// Adds the passes that quantize as the options say, if they do. With `scalesChannels` they may also change what weights read, which
/// needs operations of the hone dialect to write it to. Fails as addRewrites does.
llvm::LogicalResult addQuantization(const CompileOptions &options, mlir::OpPassManager &pm, mlir::Location loc,
                                    bool scalesChannels);

/// Adds the passes that the options stand for. Fails, after an error, where an option has a value that is not supported.
llvm::LogicalResult addRewrites(const CompileOptions &options, mlir::OpPassManager &pm, mlir::Location loc);

/// Adds the passes that store weights in fewer bytes: scales in f16, and no zeros where that is faster on the CPU of the options, for what
/// they tune for. What the model came with counts like what was quantized or pruned here. Fails as addRewrites does.
llvm::LogicalResult addStorageRewrites(const CompileOptions &options, mlir::OpPassManager &pm, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_DRIVER_REWRITES_H
