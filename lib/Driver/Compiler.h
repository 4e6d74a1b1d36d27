// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One compilation: the phases from a file to an artefact.

#ifndef HONE_LIB_DRIVER_COMPILER_H
#define HONE_LIB_DRIVER_COMPILER_H

#include "Options/Attention.h"
#include "Options/Compression.h"
#include "Options/Draft.h"
#include "Options/Encoder.h"
#include "Options/Gradients.h"
#include "Options/Output.h"
#include "Options/Pooling.h"
#include "Options/Raise.h"
#include "Options/Reading.h"
#include "Options/Retention.h"
#include "Options/Speculation.h"
#include "Options/Storage.h"
#include "Options/Target.h"
#include "Phases.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace hone {

class CompressionRecorder;

struct CompileOptions {
  std::string input; // .onnx, .mlir or .mlirbc
  ReadOptions reading;
  RaiseOptions raising;
  TargetOptions target;
  CompressionOptions compression;
  StorageOptions storage;
  StateOptions state;
  EncoderOptions encoder;
  PoolingOptions pooling;
  DraftOptions draft;
  AttentionOptions attention;
  GradientOptions gradients;
  SpeculationOptions speculation;
  RetentionOptions retention;
  OutputOptions outputs;
  PhaseOptions phases;
  LikelySizes sizes;
  /// Files that the command reads beside those above; no output is an input.
  std::vector<std::string> otherInputs;
  /// More of the rewrite phase, after its passes, or empty.
  std::function<llvm::LogicalResult(mlir::ModuleOp)> rewrite;
  /// Watches the rewrite phase, or null.
  CompressionRecorder *recorder = nullptr;
};

/// For `CompileOptions::rewrite`: leaves the function that gradients are made of, and gives the fingerprint of the model. Fails as
/// getFingerprint does.
llvm::FailureOr<std::string> keepDifferentiated(mlir::ModuleOp module);

/// Adds the passes of a phase, with those that the options stand for.
llvm::LogicalResult buildPhase(const Phase &phase, const CompileOptions &options, mlir::OpPassManager &pm,
                               mlir::Location loc);

/// Reads a model by the ending of its name; null after a diagnostic. Names of files in IR are then those from the current folder.
mlir::OwningOpRef<mlir::ModuleOp> readModel(llvm::StringRef path, mlir::MLIRContext *context,
                                            const ReadOptions &options = ReadOptions());

/// The module in the text of the file `path`; null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> readModuleText(std::unique_ptr<llvm::MemoryBuffer> text, llvm::StringRef path,
                                                 mlir::MLIRContext *context);

/// Runs the phases up to and with `last`.
llvm::LogicalResult runPhases(mlir::ModuleOp module, llvm::StringRef last);

/// Runs a whole compilation; errors are diagnostics of `context`.
llvm::LogicalResult compile(const CompileOptions &options, mlir::MLIRContext *context);

/// Writes a module as text, or as bytecode where the name ends in .mlirbc; the file appears whole or not at all.
/// "-" is standard output.
llvm::LogicalResult writeModule(mlir::ModuleOp module, llvm::StringRef path);

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPILER_H
