// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: batch normalisation into the weights of the convolution before it (Jacob et al., 2018, section 3.2), and so what multiplies or
// shifts each channel by a number otherwise. With the given statistics a normalisation multiplies each channel with
// s = scale / sqrt(variance + epsilon), which each row of the weight can do, and adds bias - mean * s.

#include "hone/Conversion/Passes.h"

#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

#include <cmath>

using namespace mlir;

namespace hone {
#define GEN_PASS_DEF_FOLDBATCHNORMS
#include "hone/Conversion/Passes.h.inc"

namespace {
/// The operand names of ONNX by number.
enum BatchNormOperands : unsigned { kScale = 1, kBias, kMean, kVariance };

class BatchNormFolder {
public:
  explicit BatchNormFolder(ModuleOp module) : module(module), symbols(module) {}

  /// False where the operation stays as it is.
  bool fold(Operation *op);

private:
  using Floats = std::optional<std::vector<float>>;
  /// What each channel is multiplied with, and what is added then.
  struct Affine {
    std::vector<double> factors, shifts;
  };

  std::optional<Affine> readNorm(Operation *norm, size_t channels);
  std::optional<Affine> readArithmetic(Operation *op, unsigned input, size_t channels);

  /// The f32 elements of a parameter or constant; nothing for anything else.
  Floats read(Value value);
  Value addParam(OpBuilder &b, Location loc, Value source, RankedTensorType type, ArrayRef<float> elements);

  ModuleOp module;
  SymbolTable symbols;
};
} // namespace

/// The operand, or null where it is not given.
static Value getOperand(Operation *op, unsigned number) {
  Value value = number < op->getNumOperands() ? op->getOperand(number) : Value();
  return value && isa<RankedTensorType>(value.getType()) ? value : Value();
}

static RankedTensorType getF32Type(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  return type && type.getElementType().isF32() && type.hasStaticShape() && !type.getEncoding() ? type
                                                                                               : RankedTensorType();
}

BatchNormFolder::Floats BatchNormFolder::read(Value value) {
  RankedTensorType type = getF32Type(value);
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (!type || !op)
    return std::nullopt;
  if (onnxir::isNode(op, "Reshape")) // the same elements in the same order
    return read(op->getOperand(0));
  if (auto get = dyn_cast<GetParamOp>(op)) {
    auto param = symbols.lookup<ParamOp>(get.getName());
    auto elements = param ? readElements(param) : FailureOr<std::vector<float>>();
    return succeeded(elements) ? Floats(std::move(*elements)) : std::nullopt;
  }
  auto dense = onnxir::isNode(op, "Constant") ? op->getAttrOfType<DenseFPElementsAttr>("value") : DenseFPElementsAttr();
  if (!dense)
    return std::nullopt;
  return std::vector<float>(dense.value_begin<float>(), dense.value_end<float>());
}

Value BatchNormFolder::addParam(OpBuilder &b, Location loc, Value source, RankedTensorType type,
                                ArrayRef<float> elements) {
  auto get = source ? source.getDefiningOp<GetParamOp>() : GetParamOp();
  std::string name = (get ? get.getName().str() : std::string("convolution")) + ".normalized";
  OpBuilder before = OpBuilder::atBlockBegin(module.getBody());
  Attribute storage =
      makeResource(type, {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(float)});
  auto param = ParamOp::create(before, loc, name, type, storage);
  symbols.insert(param);
  return GetParamOp::create(b, loc, type, param.getSymName());
}

std::optional<BatchNormFolder::Affine> BatchNormFolder::readNorm(Operation *norm, size_t channels) {
  auto training = norm->getAttrOfType<IntegerAttr>("training_mode");
  bool isOnly = llvm::all_of(norm->getResults().drop_front(), [](Value result) { return result.use_empty(); });
  if (!isOnly || (training && training.getInt() != 0))
    return std::nullopt;
  Floats scale = read(getOperand(norm, kScale)), shift = read(getOperand(norm, kBias));
  Floats mean = read(getOperand(norm, kMean)), variance = read(getOperand(norm, kVariance));
  for (const Floats *floats : {&scale, &shift, &mean, &variance})
    if (!*floats || (*floats)->size() != channels)
      return std::nullopt;
  auto given = norm->getAttrOfType<FloatAttr>("epsilon");
  double epsilon = given ? given.getValueAsDouble() : 1e-5;
  Affine affine;
  for (size_t i = 0; i < channels; ++i) {
    affine.factors.push_back((*scale)[i] / std::sqrt((*variance)[i] + epsilon));
    affine.shifts.push_back((*shift)[i] - (*mean)[i] * affine.factors.back());
  }
  return affine;
}

/// Whether `shape` has one dimension of `channels` for the second of `rank` at most, and else only such of size 1.
static bool isOfChannels(ArrayRef<int64_t> shape, int64_t rank, size_t channels) {
  int64_t channel = 1 - (rank - static_cast<int64_t>(shape.size()));
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size != 1 && (static_cast<int64_t>(dim) != channel || size != static_cast<int64_t>(channels)))
      return false;
  return static_cast<int64_t>(shape.size()) <= rank;
}

/// Add, Sub, Mul or Div with a number, or numbers `[..., channels, 1...]`, where the convolution is operand `input`.
std::optional<BatchNormFolder::Affine> BatchNormFolder::readArithmetic(Operation *op, unsigned input, size_t channels) {
  Value other = getOperand(op, 1 - input);
  RankedTensorType type = getF32Type(other), result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !result || !isOfChannels(type.getShape(), result.getRank(), channels))
    return std::nullopt;
  Floats numbers = read(other);
  if (!numbers)
    return std::nullopt;
  bool isSum = onnxir::isNode(op, "Add") || onnxir::isNode(op, "Sub");
  Affine affine{std::vector<double>(channels, 1.0), std::vector<double>(channels, 0.0)};
  for (size_t i = 0; i < channels; ++i) {
    double number = (*numbers)[numbers->size() == 1 ? 0 : i];
    if (isSum)
      affine.shifts[i] = onnxir::isNode(op, "Sub") && input == 0 ? -number : number;
    else
      affine.factors[i] = onnxir::isNode(op, "Div") ? 1 / number : number;
    if (onnxir::isNode(op, "Sub") && input == 1)
      affine.factors[i] = -1;
  }
  bool isFinite = llvm::all_of(affine.factors, [](double factor) { return std::isfinite(factor); });
  return isFinite ? std::optional(std::move(affine)) : std::nullopt; // dividing by 0 is infinite, 0 times that is NaN
}

/// The number of the operand that is the result of a convolution which nothing else reads; nothing where there is none.
static std::optional<unsigned> findConvolution(Operation *op) {
  bool isNorm = onnxir::isNode(op, "BatchNormalization"), isQuotient = onnxir::isNode(op, "Div");
  for (unsigned number = 0; number < (isNorm || isQuotient ? 1 : 2); ++number) {
    Value input = getOperand(op, number);
    Operation *convolution = input ? input.getDefiningOp() : nullptr;
    if (onnxir::isNode(convolution, "Conv") && input.hasOneUse() && convolution->getBlock() == op->getBlock())
      return number;
  }
  return std::nullopt;
}

bool BatchNormFolder::fold(Operation *op) {
  std::optional<unsigned> input = findConvolution(op);
  if (!input)
    return false;
  Operation *convolution = op->getOperand(*input).getDefiningOp();
  RankedTensorType type = getF32Type(getOperand(convolution, 1));
  Value oldWeight = convolution->getOperand(1), oldBias = getOperand(convolution, 2);
  if (!type || type.getNumElements() == 0)
    return false;
  auto rows = static_cast<size_t>(type.getDimSize(0)), columns = static_cast<size_t>(type.getNumElements()) / rows;
  bool isNorm = onnxir::isNode(op, "BatchNormalization");
  std::optional<Affine> affine = isNorm ? readNorm(op, rows) : readArithmetic(op, *input, rows);
  Floats bias = oldBias ? read(oldBias) : std::vector<float>(rows, 0.0f);
  if (!affine || !bias || bias->size() != rows)
    return false;
  Floats weight;
  bool isScaled = affine && llvm::any_of(affine->factors, [](double factor) { return factor != 1.0; });
  if (isScaled && !(weight = read(oldWeight)))
    return false;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = row * columns; weight && i < (row + 1) * columns; ++i)
      (*weight)[i] = static_cast<float>((*weight)[i] * affine->factors[row]);
    (*bias)[row] = static_cast<float>((*bias)[row] * affine->factors[row] + affine->shifts[row]);
  }
  OpBuilder b(op);
  auto vector = RankedTensorType::get({type.getDimSize(0)}, type.getElementType());
  Value newWeight = weight ? addParam(b, op->getLoc(), oldWeight, type, *weight) : oldWeight;
  SmallVector<Value> operands{convolution->getOperand(0), newWeight, addParam(b, op->getLoc(), oldBias, vector, *bias)};
  OperationState state(convolution->getLoc(), convolution->getName(), operands, op->getResult(0).getType(),
                       convolution->getAttrs());
  op->getResult(0).replaceAllUsesWith(b.create(state)->getResult(0));
  op->erase();
  convolution->erase();
  return true;
}

namespace {
struct FoldBatchNorms : impl::FoldBatchNormsBase<FoldBatchNorms> {
  void runOnOperation() override {
    SmallVector<Operation *> all; // in order: a normalisation may follow a sum
    getOperation().walk([&](Operation *op) {
      for (llvm::StringRef name : {"BatchNormalization", "Add", "Sub", "Mul", "Div"})
        if (onnxir::isNode(op, name))
          all.push_back(op);
    });
    BatchNormFolder folder(getOperation());
    for (Operation *op : all) {
      Location loc = op->getLoc();
      if (!folder.fold(op))
        continue;
      ++numFolded;
      remark::passed(loc, remark::RemarkOpts::name("Folded").category("hone-fold-batch-norms"))
          << "went into the weights of the convolution before it";
    }
  }
};
} // namespace

} // namespace hone
