// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-rotate-residual-stream: all that a transformer adds up between its layers is multiplied with one orthogonal matrix, by
// the weights that write it and those that read it. The model means the same.

#include "ResidualStream.h"

#include "hone/Compress/Rotation.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_ROTATERESIDUALSTREAM
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {
struct RotateResidualStream : impl::RotateResidualStreamBase<RotateResidualStream> {
  using RotateResidualStreamBase::RotateResidualStreamBase;

  void runOnOperation() override;

private:
  FailureOr<std::string> rotate(ParamOp param, const residual::Part &part, const compress::Rotation &rotation) const;
};
} // namespace

/// What norms multiply their rows with, by the names of their weights.
static FailureOr<llvm::StringMap<std::vector<float>>> readGains(const residual::ResidualStream &found) {
  llvm::StringMap<std::vector<float>> gains;
  for (const auto &[op, part] : found.parts) {
    if (part.role != residual::Role::Gain)
      continue;
    auto param = cast<ParamOp>(op);
    FailureOr<std::vector<float>> elements = readElements(param);
    if (failed(elements))
      return failure();
    for (float &element : *elements)
      element += part.hasUnitOffset ? 1 : 0;
    gains[param.getSymName()] = std::move(*elements);
  }
  return gains;
}

FailureOr<std::string> RotateResidualStream::rotate(ParamOp param, const residual::Part &part,
                                                    const compress::Rotation &rotation) const {
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements))
    return failure();
  RankedTensorType type = param.getTensorType();
  int64_t rows = type.getRank() == 2 ? type.getDimSize(0) : 1, columns = type.getShape().back();
  compress::Weight weight{*elements, rows, columns};
  std::string what;
  switch (part.role) {
  case residual::Role::Gain:
    llvm::fill(*elements, part.hasUnitOffset ? 0.0f : 1.0f);
    what = "is multiplied into what reads it";
    break;
  case residual::Role::Reader:
    for (int64_t i = 0; !part.gain.empty() && i < rows * columns; ++i)
      (*elements)[i] *= part.gain[i % columns];
    noteInputRotation(param, {part.gain, seed});
    [[fallthrough]];
  case residual::Role::Table:
    rotation.rotateInputs(weight);
    what = "is rotated by rows";
    break;
  case residual::Role::Writer:
    rotation.rotateOutputs(weight);
    what = "is rotated by columns";
    break;
  }
  writeElements(param, *elements);
  return what;
}

void RotateResidualStream::runOnOperation() {
  ModuleOp module = getOperation();
  residual::ResidualStream found = residual::findResidualStream(module);
  auto refuse = [&](const Twine &reason) {
    auto options = remark::RemarkOpts::name("Rotated").category("hone-rotate-residual-stream");
    remark::missed(module.getLoc(), options) << ("the residual stream stays as it is: " + reason).str();
  };
  if (!found.blocker.empty())
    return refuse(found.blocker);
  FailureOr<llvm::StringMap<std::vector<float>>> gains = readGains(found);
  if (failed(gains) || failed(keepFingerprint(module)))
    return signalPassFailure();
  for (auto &[op, part] : found.parts) {
    if (!part.norm)
      continue;
    part.gain = gains->lookup(part.norm.getValue());
    if (llvm::any_of(part.gain, [](float gain) { return gain == 0 || !std::isfinite(gain); }))
      return refuse(part.norm.getValue() + " has elements that are 0 or not finite");
  }
  compress::Rotation rotation(found.width, seed);
  auto blocker = [&](ParamOp param, ArrayRef<GetParamOp>) {
    return found.parts.contains(param) ? "" : std::string("it holds nothing of the residual stream");
  };
  auto change = [&](ParamOp param, ArrayRef<GetParamOp>) {
    return rotate(param, found.parts.find(param)->second, rotation);
  };
  ParameterChange rotating{"hone-rotate-residual-stream", "Rotated", "stays as it is", blocker, change};
  rotating.keepsMeaning = true;
  FailureOr<int64_t> rotated = changeParameters(module, rotating);
  if (failed(rotated))
    return signalPassFailure();
  numRotated += *rotated;
}

} // namespace hone
