//===- HoneParams.h - passes that change how parameters are stored ------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who reads a parameter, the change of its encoding, and what tells a model from others.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEPARAMS_H
#define HONE_DIALECT_HONE_HONEPARAMS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "llvm/ADT/MapVector.h"

namespace hone {

/// The attribute of a parameter for which an encoding is chosen, until a pass stores it so.
constexpr llvm::StringLiteral kEncodingAttr = "hone.encoding";

/// The parameters that are read, in the order of their first reads, and what reads them.
llvm::MapVector<mlir::Operation *, llvm::SmallVector<GetParamOp>> findReads(mlir::ModuleOp module);

/// Whether rows are looked up in the parameter that `reads` read, whatever else happens to it.
bool isTable(llvm::ArrayRef<GetParamOp> reads);

/// Why the parameter that `reads` read is no weight of products, or an empty string: something has to multiply with it, and nothing
/// but products and lookups may read it.
std::string getProductBlocker(llvm::ArrayRef<GetParamOp> reads);

/// Why the floats of `param` cannot be stored in another way, or an empty string: it has to be a matrix of f32, as plain or
/// `#hone.stored` elements, that operations read as a weight alone.
std::string getEncodingBlocker(ParamOp param, llvm::ArrayRef<GetParamOp> reads);

/// How many experts have a matrix in the weight that `reads` read; 0 where it is not one of experts.
int64_t countExperts(llvm::ArrayRef<GetParamOp> reads);

/// The weights that kernels read in the same form as the one that `reads` read: of experts gate beside up, and the other way round.
llvm::SmallVector<ParamOp> findPartners(llvm::ArrayRef<GetParamOp> reads, const mlir::SymbolTable &symbols);

/// Gives `param` and its `reads` the encoding. The bytes stay as they are until they are written: `#hone.converted` of what
/// they were first.
void changeEncoding(ParamOp param, llvm::ArrayRef<GetParamOp> reads, mlir::Attribute encoding);

/// What a pass does with a parameter and what reads it.
struct ParameterChange {
  llvm::StringRef pass;    // category of the remarks
  llvm::StringRef name;    // name of the remarks
  llvm::StringRef refused; // what a remark says of a parameter with a blocker, before that: "stays as it is"
  /// Why a parameter stays as it is, or an empty string.
  llvm::function_ref<std::string(ParamOp, llvm::ArrayRef<GetParamOp>)> getBlocker;
  /// Changes a parameter, and says what it is now: "is packed". Fails after an error.
  llvm::function_ref<llvm::FailureOr<std::string>(ParamOp, llvm::ArrayRef<GetParamOp>)> change;
  /// Whether the elements change along with what reads them, so that the model means the same: reports count no error then.
  bool keepsMeaning = false;
};

/// Changes the parameters of `module` that are read, in the order of their first reads, with a remark and a
/// `ChangeParameterAction` for each; returns how many were changed. Ends with the first change that fails.
llvm::FailureOr<int64_t> changeParameters(mlir::ModuleOp module, const ParameterChange &change);

/// What tells a model from others, in 32 hexadecimal digits: a hash (XXH3 of 128 bits) over each parameter's symbol, type and up
/// to 4096 first bytes, in the order of the module, as they were before they were converted. Files that measure a model name
/// it by this. Of a module with `hone.model`, it is that. Fails, after a diagnostic, where bytes cannot be read.
llvm::FailureOr<std::string> getFingerprint(mlir::ModuleOp module);

/// Keeps the fingerprint of `module` in `hone.model`, before weights change: what was measured of the model stays valid for what
/// is left of it. Fails as getFingerprint does.
llvm::LogicalResult keepFingerprint(mlir::ModuleOp module);

/// The attribute of a `hone.param` [N, K] whose columns were multiplied with K numbers, by which its input was divided since the
/// model was read: what was measured of that input counts divided by them.
constexpr llvm::StringLiteral kChannelScalesName = "hone.channel_scales";

/// Those K numbers; nothing where the input is as it was.
llvm::ArrayRef<float> getChannelScales(ParamOp param);

/// Notes that the columns of `param` were multiplied with `scales`, on top of what they were multiplied with before.
void addChannelScales(ParamOp param, llvm::ArrayRef<float> scales);

/// The attribute of a parameter that joins matrices: the model's names, as strings, of those in order, or of one with all of them.
inline constexpr llvm::StringLiteral kJoinedAttrName = "hone.joined";

/// The attribute of a parameter [N, K] that has lost columns or changed their order: `{kept = array<i64: …>, of = …}`, the K columns
/// that it has of those of the model. What was measured of the model's inputs is selected by it.
inline constexpr llvm::StringLiteral kInputsAttrName = "hone.inputs";

/// The columns that `param` has of the model's, and how many those were; nothing where it has all of them. Of a weight whose experts
/// have columns of their own, those of all experts one after the other.
struct KeptInputs {
  llvm::ArrayRef<int64_t> kept;
  int64_t all;
};
std::optional<KeptInputs> getKeptInputs(ParamOp param);

/// Keeps in `param`, [N, K], that columns `kept` of its K are left, in that order; of each of several experts as many, one expert after
/// the other.
void keepInputs(ParamOp param, llvm::ArrayRef<int64_t> kept, int64_t experts = 1);

/// The type of 16 bits that the option of a pass names, f16 or bf16; null after an error that says what it was for.
mlir::FloatType getHalfType(mlir::MLIRContext *context, llvm::StringRef name, llvm::StringRef purpose);

} // namespace hone

#endif // HONE_DIALECT_HONE_HONEPARAMS_H
