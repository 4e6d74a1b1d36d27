// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of CUDA. They read f32, f16 and bf16 alike.

#include "CudaSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Transforms/RoundActivations.h"
#include "hone/kernels/limits.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone {

/// Elements of a head that kernels of attention take at most: of values, and of queries that select blocks.
static constexpr int64_t kMostHeadValues = 512;
/// What rows of a weight begin at multiples of.
static constexpr int64_t kRowBytes = 16;
/// Inputs from which on a product of matrices has a kernel, and leading axes of an operand that kernels walk.
static constexpr int64_t kLeastInputs = 16, kMostLeadingAxes = 3;
/// Inputs that a lane takes at once, the fewest that share a scale, and bits that rows of levels are multiples of.
static constexpr int64_t kLaneInputs = 8, kLeastGroup = 32, kWordBits = 32;

bool arePlainFloats(ValueRange values) {
  return llvm::all_of(values, [](Value value) {
    if (!value)
      return true;
    auto type = cast<RankedTensorType>(value.getType());
    return !type.getEncoding() && !getFloatName(type.getElementType()).empty();
  });
}

/// The type of the numbers of a weight that lies in memory as rows of outputs which kernels read, or null.
static Type getRowType(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  Type element = type.getElementType();
  if (auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding())) {
    if (stored.getTransposed())
      return {};
    element = stored.getType();
  } else {
    auto memory = weight.getDefiningOp<bufferization::ToTensorOp>();
    if (type.getEncoding() || !memory || !memory.getBuffer().getDefiningOp<hrt::WeightOp>())
      return {};
  }
  bool isAligned = type.getRank() == 2 && type.getDimSize(1) * getElementBytes(element) % kRowBytes == 0;
  return isAligned ? element : Type();
}

/// Whether kernels read levels of so many inputs: rows of whole words, and groups of a power of two.
static bool hasReadableRows(AffineAttr affine, int64_t inputs) {
  int64_t group = affine.getGroup();
  bool areGroups =
      group == 0 ? inputs * affine.getBits() % kWordBits == 0 : group >= kLeastGroup && llvm::isPowerOf2_64(group);
  return areGroups && inputs % kLaneInputs == 0 && !affine.getTransposed();
}

/// Whether a matrix of plain floats is computed, or state: no parameter. Kernels bring its rows into order before they multiply.
static bool isComputedMatrix(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  auto memory = weight.getDefiningOp<bufferization::ToTensorOp>();
  Value buffer = memory ? memory.getBuffer() : Value();
  if (auto transpose = buffer ? buffer.getDefiningOp<memref::TransposeOp>() : memref::TransposeOp())
    buffer = transpose.getIn();
  return type.getRank() == 2 && arePlainFloats(weight) && (!buffer || !buffer.getDefiningOp<hrt::WeightOp>());
}

static bool isRounding(AffineAttr affine) { return affine && affine.getActivations() != 0 && !affine.getAtLeast(); }

AffineAttr getLevels(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  auto sparse = dyn_cast_or_null<DenseSparseAttr>(type.getEncoding());
  auto affine = dyn_cast_or_null<AffineAttr>(sparse ? sparse.getOf() : type.getEncoding());
  return affine && hasReadableRows(affine, type.getDimSize(1)) ? affine : AffineAttr();
}

/// What a 2:4 weight keeps of its inputs where kernels read it where it lies, else null: numbers, or levels.
static Attribute getKept(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  auto kept = dyn_cast_or_null<NmAttr>(type.getEncoding());
  if (!kept || kept.getN() != 2 || kept.getM() != 4 || type.getDimSize(1) % kLeastGroup != 0)
    return {};
  AffineAttr affine = kept.getAffine();
  bool areLevels = affine && !isRounding(affine) && hasReadableRows(affine, type.getDimSize(1)) &&
                   (affine.getBits() == 4 || affine.getBits() == 8);
  return !affine || areLevels ? kept.getOf() : Attribute();
}

std::string getFormat(Value weight) {
  if (AffineAttr affine = getLevels(weight)) {
    bool hasOutliers = isa<DenseSparseAttr>(cast<RankedTensorType>(weight.getType()).getEncoding());
    return (hasOutliers ? "outliers.affine" : "affine") + std::to_string(affine.getBits());
  }
  Type rows = getRowType(weight);
  return rows ? getFloatName(rows).str() : "";
}

bool areReadTogether(ArrayRef<Value> weights) {
  std::string format = getFormat(weights.front());
  return !format.empty() && llvm::all_of(weights, [&](Value weight) {
    bool hasOutliers = isa_and_nonnull<DenseSparseAttr>(cast<RankedTensorType>(weight.getType()).getEncoding());
    return !hasOutliers && getFormat(weight) == format && getLevels(weight) == getLevels(weights.front());
  });
}

bool roundsActivations(Value weight) { return isRounding(getLevels(weight)); }

/// The kernel that multiplies with a weight; empty where none does.
static std::string getProduct(Value weight) {
  if (Attribute kept = getKept(weight)) {
    auto affine = dyn_cast<AffineAttr>(kept);
    return "cuda.sparse_linear." +
           (affine ? "affine" + std::to_string(affine.getBits()) : getFloatName(cast<TypeAttr>(kept).getValue()).str());
  }
  std::string format = getFormat(weight);
  if (format.empty() && isComputedMatrix(weight))
    format = getFloatName(cast<RankedTensorType>(weight.getType()).getElementType());
  return format.empty() ? "" : "cuda.linear." + format;
}

void addFormatIntegers(KernelCall &kernel, AffineAttr affine) {
  if (affine)
    kernel.ints.append({{"group", affine.getGroup()}, {"isSigned", affine.getIsSigned()}});
}

/// act(x · weightᵀ + bias) · factor
static KernelCall selectProduct(OpBuilder &b, Location loc, Value x, Value weight, Value bias, Value factor = {},
                                int64_t activation = 0) {
  std::string name = getProduct(weight);
  if (name.empty() || !arePlainFloats({x, bias, factor}))
    return {};
  if (roundsActivations(weight)) {
    ImplicitLocOpBuilder builder(loc, b);
    x = roundActivations(builder, x, weight);
  }
  KernelCall kernel{
      name, {{"x", x}, {"weight", weight}, {"bias", bias}, {"factor", factor}}, {{"activation", activation}}, {}};
  Attribute kept = getKept(weight);
  addFormatIntegers(kernel, kept ? dyn_cast<AffineAttr>(kept) : getLevels(weight));
  return kernel;
}

/// a · b as the layer whose weight is bᵀ, where b is one matrix. Sums of few products are loops, which are fused with what follows.
static KernelCall select(OpBuilder &b, MatmulOp op) {
  RankedTensorType left = op.getA().getType(), right = op.getB().getType();
  int64_t inputs = right.getDimSize(right.getRank() - 2);
  if (!ShapedType::isDynamic(inputs) && inputs < kLeastInputs)
    return {};
  if (right.getRank() != 2 || left.getRank() > kMostLeadingAxes + 1)
    return selectMatmul(op, "cuda.matmul.f32");
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, op.getLoc(), op.getB());
  std::swap(sizes[0], sizes[1]);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), sizes, right.getElementType());
  Value weight = linalg::TransposeOp::create(b, op.getLoc(), op.getB(), empty, ArrayRef<int64_t>{1, 0})->getResult(0);
  KernelCall kernel = selectProduct(b, op.getLoc(), op.getA(), weight, Value());
  if (Value addend = op.getAddend(); addend && !kernel.name.empty())
    kernel.operands.push_back({"residual", addend});
  return kernel;
}

/// What follows zeros along the last axis: a bias of the last keys. Null where other axes are padded, or with other numbers.
static Value getBiasOfLastKeys(Value bias) {
  auto pad = bias ? bias.getDefiningOp<tensor::PadOp>() : tensor::PadOp();
  if (!pad || !matchPattern(pad.getConstantPaddingValue(), m_AnyZeroFloat()))
    return {};
  auto isZero = [](OpFoldResult size) { return isZeroInteger(size); };
  bool isInFront =
      llvm::all_of(pad.getMixedHighPad(), isZero) && llvm::all_of(ArrayRef(pad.getMixedLowPad()).drop_back(), isZero);
  return isInFront ? pad.getSource() : Value();
}

static KernelCall select(AttentionOp op) {
  RankedTensorType values = op.getValue().getType();
  bool isSize = !values.isDynamicDim(3) && values.getDimSize(3) > 0 && values.getDimSize(3) <= kMostHeadValues;
  if (!isSize ||
      !arePlainFloats({op.getQuery(), op.getKey(), op.getValue()})) // the others are f32, which the kernel reads
    return {};
  Value tail = getBiasOfLastKeys(op.getBias());
  KernelCall kernel = callAttention(op, "cuda.attention.f32", tail ? tail : op.getBias());
  if (!kernel.name.empty())
    kernel.ints.push_back({"tail", tail ? 1 : 0});
  return kernel;
}

/// Rows of a table that is kept as plain rows, or as codes.
static KernelCall select(EmbeddingOp op) {
  auto type = op.getTable().getType();
  KernelCall kernel{"cuda.embedding.f32", {{"ids", op.getIds()}, {"table", op.getTable()}}, {}, {}};
  if (auto affine = dyn_cast_or_null<AffineAttr>(type.getEncoding()); affine && !affine.getTransposed()) {
    kernel.name = "cuda.embedding.affine";
    kernel.ints.push_back({"bits", affine.getBits()});
    addFormatIntegers(kernel, affine);
    return kernel;
  }
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  Type element = stored ? stored.getType() : type.getElementType();
  bool isRows = (!type.getEncoding() || (stored && !stored.getTransposed())) && !getFloatName(element).empty();
  return isRows ? kernel : KernelCall();
}

static KernelCall select(PoolKeysOp op) {
  if (!hasKernel(op) || op.getBounds() || !arePlainFloats(op.getKeys()))
    return {};
  return {"cuda.pool_keys.f32", {{"keys", op.getKeys()}, {"keyBegin", op.getKeyBegin()}}, {{"size", op.getSize()}}, {}};
}

static KernelCall select(SelectBlocksOp op) {
  bool isRead = !op.getBounds() && op.getQuery().getType().getDimSize(3) <= kMostHeadValues &&
                arePlainFloats({op.getQuery(), op.getPooled()});
  return isRead ? selectNamesake(op, "cuda.") : KernelCall();
}

/// Whether the kernel has room for the keys, where it is linear attention.
static bool hasRoomForKeys(Operation *op) {
  auto attention = dyn_cast<LinearAttentionOp>(op);
  if (!attention)
    return true;
  RankedTensorType keys = attention.getKey().getType();
  return !keys.isDynamicDim(3) && keys.getDimSize(3) <= kernels::kMostLinearAttentionKeys;
}

static KernelCall select(OpBuilder &b, Operation *op) {
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    return select(embedding);
  if (auto linear = dyn_cast<LinearOp>(op))
    return selectProduct(b, op->getLoc(), linear.getX(), linear.getWeight(), linear.getBias());
  if (auto pool = dyn_cast<PoolKeysOp>(op))
    return select(pool);
  if (auto blocks = dyn_cast<SelectBlocksOp>(op))
    return select(blocks);
  if (auto product = dyn_cast<MatmulOp>(op))
    return select(b, product);
  KernelCall namesake = selectNamesake(op, "cuda.");
  bool isRead = !namesake.name.empty() && arePlainFloats(op->getOperands()) && hasRoomForKeys(op);
  return isRead ? namesake : KernelCall();
}

static bool areRead(ArrayRef<Value> weights) {
  return llvm::none_of(weights, [](Value weight) { return getProduct(weight).empty(); });
}

/// The RMSNorm whose result is x, where kernels compute it and it has no other readers.
static RmsNormOp getInputNorm(Value x, ArrayRef<Operation *> readers) {
  auto norm = x.getDefiningOp<RmsNormOp>();
  bool isComputed = norm && norm->getBlock() == readers.front()->getBlock() && norm.getX().getType() == x.getType() &&
                    arePlainFloats({x, norm.getWeight()});
  auto isReader = [&](Operation *user) { return isa<tensor::DimOp>(user) || llvm::is_contained(readers, user); };
  return isComputed && llvm::all_of(x.getUsers(), isReader) ? norm : RmsNormOp();
}

void addInput(ImplicitLocOpBuilder &b, KernelCall &kernel, Value x, Value weight, ArrayRef<Operation *> readers) {
  RmsNormOp norm = roundsActivations(weight) ? RmsNormOp() : getInputNorm(x, readers);
  if (roundsActivations(weight))
    x = roundActivations(b, x, weight);
  kernel.operands.append({{"x", norm ? norm.getX() : x}, {"normWeight", norm ? norm.getWeight() : Value()}});
  kernel.ints.push_back({"unitOffset", norm && norm.getUnitOffset()});
  kernel.floats.push_back({"epsilon", norm ? norm.getEpsilon().convertToDouble() : 0.0});
  if (norm)
    x.replaceUsesWithIf(norm.getX(), [](OpOperand &use) { return isa<tensor::DimOp>(use.getOwner()); });
}

/// act(x · gateᵀ + bias) · (x · upᵀ + bias) as one call, or the gate as the factor of up.
static Value createGated(OpBuilder &b, GatedMlpOp mlp, Value call) {
  Location loc = mlp.getLoc();
  int64_t activation = getNumber(mlp.getActivation());
  if (!areReadTogether({mlp.getGate(), mlp.getUp()})) {
    Value gate = createProduct(b, loc, call,
                               selectProduct(b, loc, mlp.getX(), mlp.getGate(), mlp.getGateBias(), {}, activation));
    return createProduct(b, loc, call, selectProduct(b, loc, mlp.getX(), mlp.getUp(), mlp.getUpBias(), gate));
  }
  KernelCall kernel{
      "cuda.gated_linear." + getFormat(mlp.getUp()),
      {{"gate", mlp.getGate()}, {"gateBias", mlp.getGateBias()}, {"up", mlp.getUp()}, {"upBias", mlp.getUpBias()}},
      {{"activation", activation}},
      {}};
  addFormatIntegers(kernel, getLevels(mlp.getUp()));
  Value rows = createRows(b, loc, mlp.getX(), mlp.getUp());
  ImplicitLocOpBuilder builder(loc, b);
  addInput(builder, kernel, mlp.getX(), mlp.getUp(), mlp.getOperation());
  return createKernel(b, loc, call, kernel, rows);
}

/// A feed-forward block as calls of products, each with what follows it, or null.
static Value createMlp(OpBuilder &b, Operation *op, Value call) {
  Location loc = op->getLoc();
  auto create = [&](const KernelCall &kernel) { return createProduct(b, loc, call, kernel); };
  if (auto mlp = dyn_cast<MlpOp>(op); mlp && areRead({mlp.getUp(), mlp.getDown()}) &&
                                      arePlainFloats({mlp.getX(), mlp.getUpBias(), mlp.getDownBias()})) {
    Value hidden =
        create(selectProduct(b, loc, mlp.getX(), mlp.getUp(), mlp.getUpBias(), {}, getNumber(mlp.getActivation())));
    return create(selectProduct(b, loc, hidden, mlp.getDown(), mlp.getDownBias()));
  }
  auto mlp = dyn_cast<GatedMlpOp>(op);
  if (!mlp || !areRead({mlp.getGate(), mlp.getUp(), mlp.getDown()}) ||
      !arePlainFloats({mlp.getX(), mlp.getGateBias(), mlp.getUpBias(), mlp.getDownBias()}))
    return {};
  Value hidden = createGated(b, mlp, call);
  return create(selectProduct(b, loc, hidden, mlp.getDown(), mlp.getDownBias()));
}

static SmallVector<Value> createCalls(OpBuilder &b, Operation *op, Value call) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return createAttention(b, attention, call, select(attention));
  if (auto moe = dyn_cast<MoeOp>(op))
    return asResults(createExperts(b, moe, call));
  return createCall(b, op, call, select(b, op));
}

int64_t selectCudaKernels(func::FuncOp entry) {
  int64_t appends = selectCudaAppends(entry);
  int64_t siblings = selectCudaSiblings(entry);
  int64_t mlps = replaceByKernels(
      entry, [](OpBuilder &b, Operation *op, Value call) { return asResults(createMlp(b, op, call)); });
  entry.walk([](RmsNormOp norm) { // what siblings and blocks compute themselves
    if (norm->use_empty())
      norm.erase();
  });
  return appends + siblings + mlps + replaceByKernels(entry, createCalls);
}

} // namespace hone
