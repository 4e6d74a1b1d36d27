// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One compilation: the phases from a file to an artefact.

#ifndef HONE_LIB_DRIVER_COMPILER_H
#define HONE_LIB_DRIVER_COMPILER_H

#include "hone/Import/Limits.h"
#include "hone/Target/Optimise.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <optional>
#include <string>

namespace hone {

class CompressionRecorder;

/// How models are read.
struct ReadOptions {
  Limits limits;
  /// Whether IR may name files of weights that are not in its folder.
  bool allowExternalPaths = false;
  /// Whether IR is refused: it is code, since it may hold functions of the LLVM dialect.
  bool onnxAlone = false;
};

struct CompileOptions {
  std::string input; // .onnx, .mlir or .mlirbc
  ReadOptions reading;
  std::string output; // folder of the artefact
  std::string cpu = "native";
  std::string target = "cpu"; // or cuda
  std::string chip, ptxas;    // of the target cuda: the chip to make kernels for, and CUDA's assembler or empty
  std::string tokenizer;      // tokenizer.json to ship, or empty
  std::string saveIr;         // folder for the IR after every phase, or empty
  std::string stopAfter;      // phase, or empty
  std::string startFrom;      // phase, or empty
  std::string weights;        // type to store weight matrices in (f16, bf16), or empty for the model's
  std::string
      cache; // type to keep keys and values of sessions in (f16, bf16, int8, int4, model), or empty: as the weights
  std::string quantize;         // integers to store weight matrices as (int8, int4, int3, int2), or empty
  std::string quantizeOutputs;  // integers to store the last layer as, or empty: like others
  std::optional<int64_t> group; // inputs that share a scale where weights are quantized; 0: all of a row
  /// Share of elements to keep in f16 beside integers, as 0.45%, how to choose them (magnitude, sensitivity, spqr), and a file of
  /// sensitivities; each may be empty.
  std::string outliers, outlierMethod, sensitivities;
  /// Bits for each element of a weight that the model may take, in place of `quantize`.
  std::optional<double> targetBits;
  /// Elements of weights to keep, as N:M; or `structured`, for a smaller model; or empty.
  std::string prune;
  /// With `structured`, the share of the parameters that goes (25% or 0.25), and what may go (channels, heads; layers).
  std::string sparsity, pruneParts;
  /// How to choose them (N:M: magnitude, wanda, sparsegpt; structured: magnitude, energy, obs), and how to round to integers (rtn,
  /// gptq); empty: as there is data for.
  std::string pruneMethod, quantizeMethod;
  /// Statistics of the model, for methods that read them, or empty.
  std::string calibration;
  /// Whether --prune takes the layers that make the model's results too.
  bool pruneOutputs = false;
  /// What forms of weights are to be fast for: decode, verify, prefill and numbers of rows, with commas; or empty.
  std::string tuneFor;
  /// Whether weights are stored in the forms that were asked for where those are slower, too.
  bool force = false;
  std::string passPipeline; // passes of the rewrite phase, behind those of the options
  int64_t ranks = 1;        // processes that the model is split over
  /// More of the rewrite phase, behind its passes, or empty.
  std::function<llvm::LogicalResult(mlir::ModuleOp)> rewrite;
  /// Watches the rewrite phase, or null.
  CompressionRecorder *recorder = nullptr;
  std::string remarks; // YAML file for the remarks of all passes, or empty
  Sanitizer sanitizer = Sanitizer::None;
  /// Files that the command reads and writes beside those above; no output is an input.
  std::vector<std::string> otherInputs, otherOutputs;
};

/// A step of compilation with a name; later phases read what earlier ones wrote.
struct Phase {
  llvm::StringRef name;
  llvm::StringRef summary;
  void (*build)(mlir::OpPassManager &pm, Sanitizer sanitizer);
};

/// All phases, in order. The first ("import") has no passes; those up to "lower" are the same for every target.
llvm::ArrayRef<Phase> getPhases(llvm::StringRef target = "cpu");

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
