// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The folder that a compilation makes: program.so, weights.safetensors, manifest.json (docs/artefact.md).

#ifndef HONE_ARTEFACT_ARTEFACT_H
#define HONE_ARTEFACT_ARTEFACT_H

#include "hone/Target/CPU.h"
#include "hone/io/manifest.h"
#include "hone/io/output.h"
#include "hone/io/safetensors.h"
#include "hone/runtime/signature.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>

namespace hone {

class ParamOp;

/// Adds what the manifest says of the functions of `module`: names, types and symbolic sizes of inputs, outputs and states.
/// Read before the functions become entry points.
llvm::LogicalResult describeEntries(mlir::ModuleOp module, io::Manifest &manifest);

/// Adds how the slots of `module` are kept, once that is decided.
void describeLayouts(mlir::ModuleOp module, io::Manifest &manifest);

/// The runtime's name of an element type; nothing for one that artefacts do not hold.
std::optional<hone_dtype> getDtype(mlir::Type type);

/// Streams the bytes of every placed parameter of a module into files (safetensors), on a thread of its own. Gone before `finish`,
/// it stops. The thread makes types: until `finish` the context gets no dialect.
class WeightsWriter {
public:
  /// For the parameters of `module` as they are now, which may change at once; `paths` has a file for each rank. Fails after an error.
  static llvm::FailureOr<WeightsWriter> start(mlir::ModuleOp module, llvm::ArrayRef<std::string> paths);
  WeightsWriter(WeightsWriter &&);
  WeightsWriter &operator=(WeightsWriter &&);
  ~WeightsWriter();

  /// What each file will hold, as a reader finds it.
  absl::StatusOr<std::vector<io::StoredTensor>> getTensors() const;
  /// Waits, once, until the files are whole. Fails after an error.
  llvm::LogicalResult finish();

private:
  struct State;
  explicit WeightsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// The planes of placed parameters of `module` whose elements are addresses.
std::vector<hone_addresses> listAddresses(mlir::ModuleOp module);

/// The parameters of the artefact in the folder `path`, whose bytes stay in its file. Null, after an error, where it is none, or
/// one from before weights said what they are.
mlir::OwningOpRef<mlir::ModuleOp> readWeights(llvm::StringRef path, mlir::MLIRContext *context);

/// Names of the tensors of the weights file that `module` only looks rows up in. Read before the functions become entry
/// points.
std::vector<std::string> listGatheredWeights(mlir::ModuleOp module);

/// Name in the weights file of plane `number` of `param`.
std::string getTensorName(ParamOp param, size_t number);

/// Names of the kernels that the program calls.
std::vector<std::string> listKernels(mlir::ModuleOp module);

/// Makes a folder beside `path`, under a name that nothing has; it is gone with the result. Fails after an error.
llvm::FailureOr<io::TemporaryPath> makeTemporaryFolder(llvm::StringRef path, mlir::Location loc);

/// An artefact under construction, in a folder beside its place; it appears by rename, or not at all.
class ArtefactWriter {
public:
  /// For the folder `path`, or the one that a symbolic link there names. Only an artefact may be there (FormerArtefact.h), now and when
  /// the new one is put into place.
  static llvm::FailureOr<ArtefactWriter> create(llvm::StringRef path, const io::InputFiles &inputs, mlir::Location loc);
  /// Begins to write every placed parameter of `module` into the weights file of each rank, and goes on while others work.
  llvm::LogicalResult startWeights(mlir::ModuleOp module, int64_t ranks);
  /// Waits until the weights are written.
  llvm::LogicalResult finishWeights() { return weights->finish(); }
  /// Of a tokenizer.json, or the source.spm of a Marian model, which has vocab.json beside it.
  llvm::LogicalResult addTokenizer(llvm::StringRef file);
  std::string getFile(llvm::StringRef name) const;
  /// Gives the program in `module` its signature: what it relies on of `manifest`, and of the weights, which are started.
  llvm::LogicalResult signProgram(mlir::ModuleOp module, const io::Manifest &manifest) const;
  /// Writes the manifest with the sizes of the files, and puts the folder into place.
  llvm::LogicalResult commit(io::Manifest manifest);

private:
  ArtefactWriter(llvm::StringRef path, std::string place, io::InputFiles inputs, mlir::Location loc)
      : path(path), place(std::move(place)), inputs(std::move(inputs)), loc(loc) {}

  std::string path, place; // as it was given, and with its links followed
  io::InputFiles inputs;
  io::TemporaryPath folder;
  mlir::Location loc;
  std::optional<WeightsWriter> weights;  // which are in the folder
  std::vector<hone_addresses> addresses; // among them
};

} // namespace hone

#endif // HONE_ARTEFACT_ARTEFACT_H
