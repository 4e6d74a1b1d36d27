// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From each value of the residual stream to what computes it and to everything that reads it.

#include "ResidualStream.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
  void addNorm(RmsNormOp norm);
  void addReaders(OpOperand &use, StringAttr norm);
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

static bool isOnnx(Operation *op, StringRef name) { return onnxir::isOnnxOp(op) && onnxir::getOpType(op) == name; }

/// Whether `op` only passes rows of its first operand on, as the same elements.
static bool passesOn(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice.getSourceType().getRank() == slice.getType().getRank() && slice.getType().getRank() > 0 &&
           !slice.getType().isDynamicDim(slice.getType().getRank() - 1) &&
           slice.getType().getShape().back() == slice.getSourceType().getShape().back();
  if (isa<tensor::CastOp>(op) || isOnnx(op, "Identity"))
    return true;
  return isOnnx(op, "Cast") && getElementTypeOrSelf(op->getOperand(0)) == getElementTypeOrSelf(op->getResult(0));
}

static bool readsSizes(Operation *op) { return isa<tensor::DimOp>(op) || isOnnx(op, "Shape"); }

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

/// A product of the residual stream, or of what the norm with this gain makes of it.
void Finder::addReaders(OpOperand &use, StringAttr norm) {
  Operation *op = use.getOwner();
  Part part{Role::Reader, norm};
  if (use.getOperandNumber() != 0 || !isa<LinearOp, GatedMlpOp, MlpOp>(op))
    return refuse(op, norm ? "reads what a norm makes of the residual stream" : "reads the residual stream");
  if (auto linear = dyn_cast<LinearOp>(op))
    addPart(linear.getWeightMutable(), part);
  if (auto mlp = dyn_cast<MlpOp>(op))
    addPart(mlp.getUpMutable(), part);
  if (auto mlp = dyn_cast<GatedMlpOp>(op)) {
    addPart(mlp.getGateMutable(), part);
    addPart(mlp.getUpMutable(), part);
  }
}

void Finder::addNorm(RmsNormOp norm) {
  auto get = norm.getWeight().getDefiningOp<GetParamOp>();
  addPart(norm.getWeightMutable(), {Role::Gain, nullptr, norm.getUnitOffset()});
  SmallVector<Value> rows{norm.getResult()};
  while (get && !rows.empty())
    for (OpOperand &use : rows.pop_back_val().getUses()) {
      if (passesOn(use.getOwner()))
        rows.push_back(use.getOwner()->getResult(0));
      else if (!readsSizes(use.getOwner()))
        addReaders(use, get.getNameAttr().getAttr());
    }
}

void Finder::addUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (readsSizes(op))
    return;
  if (passesOn(op) || isOnnx(op, "Add"))
    return add(op->getResult(0));
  if (auto norm = dyn_cast<RmsNormOp>(op); norm && use.getOperandNumber() == 0)
    return addNorm(norm);
  addReaders(use, nullptr);
}

/// What computes a value of the residual stream.
void Finder::addSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse(value.getParentBlock()->getParentOp(), "gets an argument that is added to the residual stream");
  auto addWriter = [&](OpOperand &weight, MutableOperandRange bias) {
    addPart(weight, {Role::Writer, nullptr});
    for (OpOperand &use : bias)
      addPart(use, {Role::Writer, nullptr});
  };
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    addPart(embedding.getTableMutable(), {Role::Table, nullptr});
  else if (auto linear = dyn_cast<LinearOp>(op))
    addWriter(linear.getWeightMutable(), linear.getBiasMutable());
  else if (auto mlp = dyn_cast<MlpOp>(op))
    addWriter(mlp.getDownMutable(), mlp.getDownBiasMutable());
  else if (auto gated = dyn_cast<GatedMlpOp>(op))
    addWriter(gated.getDownMutable(), gated.getDownBiasMutable());
  else if (isOnnx(op, "Add"))
    llvm::for_each(op->getOperands(), [&](Value operand) { add(operand); });
  else if (passesOn(op))
    add(op->getOperand(0));
  else
    refuse(op, "computes what is added to the residual stream");
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
  module.walk([&](EmbeddingOp embedding) { add(embedding.getResult()); });
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
