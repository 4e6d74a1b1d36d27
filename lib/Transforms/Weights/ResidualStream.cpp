// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From each value of the residual stream to what computes it and to everything that reads it.

#include "ResidualStream.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Rows.h"

using namespace mlir;

namespace hone::residual {

namespace {
class Finder {
public:
  explicit Finder(ModuleOp module) : module(module), symbols(module) {}

  ResidualStream find();

private:
  void add(Value value);
  void addSource(Value value);
  void addUse(OpOperand &use);
  void addNorm(const NormParts &norm, Value result);
  void addReaders(OpOperand &use, ArrayRef<WeightUse> weights, StringAttr norm);
  void addPart(OpOperand &use, Part part);
  void refuse(Operation *op, StringRef what);
  void checkReads();

  ModuleOp module;
  SymbolTable symbols;
  ResidualStream found;
  llvm::SetVector<Value> values;
  llvm::DenseSet<OpOperand *> covered; // uses of parameters
};
} // namespace

void Finder::refuse(Operation *op, StringRef what) {
  if (found.blocker.empty())
    found.blocker = (op->getName().getStringRef() + " " + what).str();
}

void Finder::addPart(OpOperand &use, Part part) {
  auto get = use.get().getDefiningOp<GetParamOp>();
  if (!get)
    return refuse(use.getOwner(), "reads a weight that is computed");
  covered.insert(&use);
  auto param = symbols.lookup<ParamOp>(get.getName());
  RankedTensorType type = param.getTensorType();
  if (!type.getElementType().isF32() || (type.getEncoding() && !isa<StoredAttr>(type.getEncoding())))
    return refuse(use.getOwner(), ("reads " + param.getSymName() + ", which is not of f32").str());
  auto [known, isNew] = found.parts.try_emplace(param, part);
  if (!isNew && !(known->second == part))
    refuse(use.getOwner(), ("reads " + param.getSymName() + ", which has another part as well").str());
}

/// Products of the residual stream, or of what the norm with this gain makes of it.
void Finder::addReaders(OpOperand &use, ArrayRef<WeightUse> weights, StringAttr norm) {
  if (weights.empty())
    refuse(use.getOwner(), norm ? "reads what a norm makes of the residual stream" : "reads the residual stream");
  for (const WeightUse &weight : weights)
    addPart(*weight.weight, {Role::Reader, norm});
}

void Finder::addNorm(const NormParts &norm, Value result) {
  addPart(*norm.gain, {Role::Gain, nullptr, norm.hasUnitOffset});
  auto get = norm.gain->get().getDefiningOp<GetParamOp>();
  if (!get)
    return;
  forEachReader(result, /*looksThrough=*/true, [&](OpOperand &use, ArrayRef<WeightUse> weights) {
    addReaders(use, weights, get.getNameAttr().getAttr());
  });
}

void Finder::addUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (readsSizes(op))
    return;
  if (passesRowsOn(op) || onnxir::isNode(op, "Add"))
    return add(op->getResult(0));
  if (auto norm = dyn_cast<NormOpInterface>(op)) {
    NormParts parts = norm.getNormParts();
    if (parts.rows == &use && !parts.subtractsMean)
      return addNorm(parts, op->getResult(0));
  }
  addReaders(use, listReaders(use), nullptr);
}

/// What computes a value of the residual stream.
void Finder::addSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse(value.getParentBlock()->getParentOp(), "gets an argument that is added to the residual stream");
  if (std::optional<WeightUse> writer = findWriter(op)) {
    addPart(*writer->weight, {writer->inputs == WeightInputs::Numbers ? Role::Table : Role::Writer, nullptr});
    for (OpOperand &use : writer->bias)
      addPart(use, {Role::Writer, nullptr});
  } else if (onnxir::isNode(op, "Add")) {
    llvm::for_each(op->getOperands(), [&](Value operand) { add(operand); });
  } else if (passesRowsOn(op)) {
    add(op->getOperand(0));
  } else {
    refuse(op, "computes what is added to the residual stream");
  }
}

void Finder::add(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  int64_t width = type && type.getRank() > 0 ? type.getShape().back() : ShapedType::kDynamic;
  if (found.width == 0)
    found.width = width;
  if (width != found.width || ShapedType::isDynamic(width) || !type.getElementType().isF32())
    found.blocker = "its values are not of f32 and one width";
  values.insert(value);
}

/// Nothing else reads the parameters.
void Finder::checkReads() {
  module.walk([&](GetParamOp get) {
    if (!found.parts.contains(symbols.lookup(get.getName())))
      return;
    for (OpOperand &use : get->getUses())
      if (!covered.contains(&use))
        refuse(use.getOwner(), ("reads " + get.getName() + " too").str());
  });
}

ResidualStream Finder::find() {
  module.walk([&](WeightedOpInterface op) {
    if (findLookup(op))
      add(op->getResult(0));
  });
  if (values.empty())
    found.blocker = "no embedding begins one";
  for (size_t i = 0; i < values.size() && found.blocker.empty(); ++i) {
    addSource(values[i]);
    for (OpOperand &use : values[i].getUses())
      addUse(use);
  }
  checkReads();
  return std::move(found);
}

ResidualStream findResidualStream(ModuleOp module) { return Finder(module).find(); }

} // namespace hone::residual
