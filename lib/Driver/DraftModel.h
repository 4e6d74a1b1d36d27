// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A draft model in the module of its target: an entry of its own over a state of its own.

#ifndef HONE_LIB_DRIVER_DRAFTMODEL_H
#define HONE_LIB_DRIVER_DRAFTMODEL_H

#include "Compiler.h"

namespace hone {

/// What the draft model is compiled with: the form that is asked for, stored and verified as the rest of `options` says, and no rewrites of the
/// target.
CompileOptions getDraftOptions(const CompileOptions &options);

/// Fails, after an error at the draft's or the target's name, unless raised `draft` can draft for raised `target`: both have an entry
/// `forward` over a state, one vocabulary and tokenizer, and the draft a state that returns to what it was and no context.
llvm::LogicalResult checkDraft(const CompileOptions &options, mlir::ModuleOp target, mlir::ModuleOp draft);

/// Leaves the entry `forward` of `draft` and what it needs.
void keepForward(mlir::ModuleOp draft);

/// Moves that entry into `target` as `draft`, and one that verifies trees, if it has that, as `draft_verify`, over the state `draft_` and its
/// name, with its parameters. Those that are the same in the target are shared; others are called `draft.` and their name. Fails, after an
/// error, where the target has a symbol `draft` or `draft_verify`.
llvm::LogicalResult addDraft(mlir::ModuleOp target, mlir::ModuleOp draft);

} // namespace hone

#endif // HONE_LIB_DRIVER_DRAFTMODEL_H
