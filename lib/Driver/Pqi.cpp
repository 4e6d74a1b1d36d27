// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model is compiled once, with both ends of the path as parameters: a copy of it is compressed, and what that makes of a weight is the
// weight's P.path_end.

#include "Pqi.h"
#include "MeasuredOutput.h"

#include "Rewrites.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Compress/Sensitivities.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/cli/path_integral.h"
#include "hone/io/safetensors.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

namespace {

/// What is on the path, in the order of the module.
struct Path {
  struct Weight {
    std::string name;
    RankedTensorType type; // in which both ends are stored
  };
  std::vector<Weight> weights;
  std::string fingerprint;
};

/// The file of integrals, one after the other.
class IntegralFile {
public:
  /// Creates the file; fails where there is no place for it.
  static absl::StatusOr<IntegralFile> create(const PqiOptions &options, const Path &path);

  absl::Status add(const std::string &name, std::span<const char> bytes);
  /// Makes it appear. What the loss does not depend on changes nothing.
  absl::Status commit();

private:
  IntegralFile(const Path &path, io::SafetensorsWriter writer) : path(&path), writer(std::move(writer)) {}

  absl::Status addZeros();

  const Path *path;
  io::SafetensorsWriter writer;
  size_t next = 0;
};

} // namespace

absl::StatusOr<IntegralFile> IntegralFile::create(const PqiOptions &options, const Path &path) {
  std::vector<io::StoredTensor> tensors;
  for (const Path::Weight &weight : path.weights)
    tensors.push_back({weight.name, HONE_F32, weight.type.getShape().vec()});
  std::map<std::string, std::string> metadata = {{"format", std::string(compress::Sensitivities::kIntegralFormat)},
                                                 {"version", "1"},
                                                 {"model", path.fingerprint},
                                                 {"intervals", std::to_string(options.intervals)}};
  HONE_ASSIGN_OR_RETURN(io::SafetensorsWriter writer,
                        io::SafetensorsWriter::create(options.output, std::move(tensors), metadata));
  return IntegralFile(path, std::move(writer));
}

absl::Status IntegralFile::addZeros() {
  std::string zeros(static_cast<size_t>(path->weights[next++].type.getNumElements()) * sizeof(float), '\0');
  return writer.append(zeros);
}

/// `bytes` are in the order of the model's file.
absl::Status IntegralFile::add(const std::string &name, std::span<const char> bytes) {
  while (next < path->weights.size() && path->weights[next].name != name)
    HONE_RETURN_IF_ERROR(addZeros());
  if (next == path->weights.size())
    return absl::InternalError("the integral of '" + name + "' is not in the order of the path");
  RankedTensorType type = path->weights[next++].type;
  auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding());
  if (!encoding)
    return writer.append({bytes.data(), bytes.size()});
  std::string elements(bytes.size(), '\0');
  encoding.unpack(type.getShape(), type.getElementType(), ArrayRef(bytes.data(), bytes.size()),
                  MutableArrayRef(elements.data(), elements.size()));
  return writer.append(elements);
}

absl::Status IntegralFile::commit() {
  while (next < path->weights.size())
    HONE_RETURN_IF_ERROR(addZeros());
  return writer.commit();
}

/// Gives `param` the end of its path, the elements of `changed`.
static LogicalResult addEnd(ParamOp param, ParamOp changed, Path &path) {
  FailureOr<std::vector<float>> elements = readStoredElements(changed);
  if (failed(elements))
    return failure();
  OpBuilder b(param);
  b.setInsertionPointAfter(param);
  auto end = cast<ParamOp>(b.clone(*param));
  end.setSymName((param.getSymName() + ".path_end").str());
  writeElements(end, *elements);
  path.weights.push_back({param.getSymName().str(), param.getTensorType()});
  return success();
}

/// Compresses a copy of `module`, and keeps what becomes of each weight beside it.
static LogicalResult addEnds(ModuleOp module, const CompileOptions &options, Path &path) {
  PassManager scaling(module.getContext(), ModuleOp::getOperationName());
  PassManager rounding(module.getContext(), ModuleOp::getOperationName());
  addChannelScaling(options, scaling);
  addRounding(options, rounding);
  if (failed(addPruning(options.compression, rounding, module.getLoc())) || failed(scaling.run(module)))
    return failure();
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(rounding.run(*copy)))
    return failure();
  SymbolTable changes(*copy);
  for (auto param : llvm::make_early_inc_range(module.getOps<ParamOp>())) {
    auto changed = changes.lookup<ParamOp>(param.getSymName());
    bool isSame =
        !changed || (changed.getTensorType() == param.getTensorType() && changed.getStorage() == param.getStorage());
    if (!isSame && failed(addEnd(param, changed, path)))
      return failure();
  }
  if (path.weights.empty())
    return emitError(module.getLoc()) << "nothing to integrate: the options change no weight of the model";
  return success();
}

static LogicalResult checkPqi(const PqiOptions &options, Location loc) {
  const CompressionOptions &compression = options.compile.compression;
  if (!compression.isAsked())
    return emitError(loc)
           << "expected --quantize, --target-bits-per-weight or --prune with --pqi: the path leads to what they make";
  if (compression.pruning.isStructured() || (compression.pruning.isAsked() && compression.quantization.isAsked()))
    return emitError(loc) << "unsupported compression for --pqi; supported: --prune=N:M alone, and quantization alone";
  return success();
}

/// Compiles the step along the path into `folder`; gives where it is.
static FailureOr<std::string> compileStep(const PqiOptions &options, const io::TemporaryPath &folder, Path &path,
                                          MLIRContext *context) {
  CompileOptions compile = options.compile;
  const CompressionOptions &asked = options.compile.compression;
  compile.compression = {};
  compile.gradients.of = "parameters";
  compile.gradients.loss = "cross-entropy";
  compile.gradients.integrates = true;
  compile.outputs.path = folder.path() + "/path.hone";
  compile.outputs.others = {options.output};
  compile.otherInputs = {options.tokens, asked.statistics, asked.quantization.pass.sensitivities,
                         asked.quantization.pass.outlierShares};
  compile.rewrite = [&](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> fingerprint = keepDifferentiated(module);
    if (failed(fingerprint))
      return failure();
    path.fingerprint = std::move(*fingerprint);
    return addEnds(module, options.compile, path);
  };
  if (failed(hone::compile(compile, context)))
    return failure();
  return compile.outputs.path;
}

static void print(const cli::PathIntegral &result, int64_t intervals) {
  double change = result.end - result.begin;
  auto line = [&](const Twine &name, double value) {
    llvm::outs() << llvm::formatv("{0,-28} {1,10:F6}", name.str(), value);
    if (change != 0)
      llvm::outs() << llvm::formatv("   {0:F3} of the change", value / change);
    llvm::outs() << "\n";
  };
  llvm::outs() << llvm::formatv("{0,-28} {1,10:F6}\n", "loss as it is", result.begin)
               << llvm::formatv("{0,-28} {1,10:F6}\n", "loss compressed", result.end)
               << llvm::formatv("{0,-28} {1,10:F6}\n", "change", change);
  line("sum of PQI, " + Twine(intervals) + " intervals", result.integral);
  line("first order", result.firstOrder);
}

LogicalResult measurePqi(const PqiOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  if (failed(checkPqi(options, loc)))
    return failure();
  auto data = cli::readPathTokens(options.tokens, options.window, options.maxTokens);
  if (failed(report(loc, data.status())))
    return failure();
  FailureOr<io::TemporaryPath> folder = makeFolderBeside(options.output, loc);
  if (failed(folder))
    return failure();
  Path path;
  FailureOr<std::string> artefact = compileStep(options, *folder, path, context);
  if (failed(artefact))
    return failure();
  auto file = IntegralFile::create(options, path);
  if (failed(report(loc, file.status())))
    return failure();
  auto receive = [&](const std::string &name, std::span<const char> bytes) { return file->add(name, bytes); };
  auto result = cli::integratePath(*artefact, *data, {options.intervals, options.threads}, receive);
  if (failed(report(loc, result.status())) || failed(report(loc, file->commit())))
    return failure();
  print(*result, options.intervals);
  return success();
}

} // namespace hone
