// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-widen-floats: every value of 16 bits becomes f32 where it is made. What a file, a slot or an operation without f32
// fixes to 16 bits stays, between two casts.

#include "OnnxMatch.h"
#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ExtensibleDialect.h"

namespace hone {
#define GEN_PASS_DEF_WIDENFLOATS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static bool isHalf(Type element) { return element.isF16() || element.isBF16(); }

/// Whether `type` is a tensor of 16-bit floats.
static bool isHalfTensor(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && isHalf(tensor.getElementType());
}

/// Whether `type` may have such floats in it, and says so: sequences, optional values and maps.
static bool holdsTensors(Type type) { return isa<DynamicType>(type); }

static Type widen(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  if (auto ranked = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(ranked.getShape(), f32, ranked.getEncoding());
  return UnrankedTensorType::get(f32);
}

namespace {

/// One function, from its first operation to its last: what an operation reads has been widened before.
class FunctionWidener {
public:
  explicit FunctionWidener(func::FuncOp function) : function(function) {}

  void run();

private:
  void visit(Block &block);
  void visit(Operation *op);
  void visitAppend(KvAppendOp append);
  void visitReturn(func::ReturnOp op);
  void isolate(Operation *op);
  void widenResults(Operation *op);
  /// `value` as f32 for all that reads it but `except`.
  void castForReaders(Value value, llvm::function_ref<bool(OpOperand &)> except = [](OpOperand &) { return false; });
  void castBack(OpOperand &use);

  func::FuncOp function;
  llvm::DenseMap<Value, Type> narrow; // what widened values were
};

struct WidenFloats : impl::WidenFloatsBase<WidenFloats> {
  void runOnOperation() override;
};

} // namespace

//===- Parameters -------------------------------------------------------------------------------------------------===//

/// Whether `use` is a weight or bias of a convolution.
static bool isConvolved(OpOperand &use) {
  Operation *op = use.getOwner();
  return (isOp(op, "Conv") || isOp(op, "ConvTranspose")) && use.getOperandNumber() > 0;
}

static bool isConvolvedAlone(ArrayRef<GetParamOp> reads) {
  return llvm::all_of(reads, [](GetParamOp read) { return llvm::all_of(read->getUses(), isConvolved); });
}

/// The elements as f32, in place of what they were.
static LogicalResult widenStorage(ParamOp param) {
  FailureOr<SmallVector<StoredBytes>> planes = openPlanes(param);
  if (failed(planes))
    return failure();
  PlainElements elements(param.getTensorType().getElementType());
  std::vector<float> wide;
  for (int64_t i = 0; i < param.getTensorType().getNumElements(); ++i)
    wide.push_back(elements.load((*planes)[0].get(), i));
  param.setType(cast<RankedTensorType>(widen(param.getTensorType())));
  writeElements(param, wide);
  return success();
}

/// Weights of products and tables keep their bytes, vectors and weights of convolutions become f32. Other tensors stay: they are cast
/// where they are read.
static LogicalResult widenParameter(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  bool takesEncodings =
      type.getRank() >= 2 && llvm::all_of(reads, [](GetParamOp read) {
        return llvm::all_of(read->getUses(), [](OpOperand &use) { return findWeight(use).has_value(); });
      });
  bool isPlain = !type.getEncoding() && !isa<ConvertedAttr>(param.getStorage());
  if (isPlain && (type.getRank() == 1 || isConvolvedAlone(reads))) {
    if (failed(widenStorage(param)))
      return failure();
  } else if (type.getEncoding() || (isPlain && takesEncodings)) {
    Attribute encoding = type.getEncoding();
    if (!encoding)
      encoding = StoredAttr::get(cast<FloatType>(type.getElementType()));
    param.setType(RankedTensorType::get(type.getShape(), Float32Type::get(param.getContext()), encoding));
  }
  for (GetParamOp read : reads)
    read.getResult().setType(param.getTensorType());
  return success();
}

//===- Values -----------------------------------------------------------------------------------------------------===//

void FunctionWidener::castForReaders(Value value, llvm::function_ref<bool(OpOperand &)> except) {
  SmallVector<OpOperand *> readers;
  for (OpOperand &use : value.getUses())
    if (!except(use))
      readers.push_back(&use);
  if (readers.empty())
    return;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Value wide = OnnxBuilder(b, value.getLoc()).cast(value, b.getF32Type());
  narrow[wide] = value.getType();
  for (OpOperand *use : readers)
    use->set(wide);
}

/// Gives a reader of 16 bits what it had.
void FunctionWidener::castBack(OpOperand &use) {
  Type before = narrow.lookup(use.get());
  if (!before)
    return;
  OpBuilder b(use.getOwner());
  use.set(OnnxBuilder(b, use.get().getLoc()).cast(use.get(), cast<TensorType>(before).getElementType()));
}

/// Whether `use` is a parameter that rows are taken from, which are cast in its place.
static bool isTable(OpOperand &use) {
  return isOp(use.getOwner(), "Gather") && use.getOperandNumber() == 0 && use.get().getDefiningOp<GetParamOp>();
}

/// Leaves an operation as it is, between casts.
void FunctionWidener::isolate(Operation *op) {
  for (OpOperand &use : op->getOpOperands())
    castBack(use);
  for (Value result : op->getResults())
    if (isHalfTensor(result.getType()))
      castForReaders(result, isTable);
}

void FunctionWidener::widenResults(Operation *op) {
  for (Value result : op->getResults())
    if (isHalfTensor(result.getType())) {
      narrow[result] = result.getType();
      result.setType(widen(result.getType()));
    }
}

/// Attributes that name a type of results, as ONNX numbers them.
static void widenAttributes(Operation *op) {
  constexpr int64_t kFloat = 1, kFloat16 = 10, kBFloat16 = 16;
  OpBuilder b(op);
  for (StringRef name : {"to", "dtype", "output_dtype"})
    if (auto type = op->getAttrOfType<IntegerAttr>(name);
        type && llvm::is_contained({kFloat16, kBFloat16}, type.getInt()))
      op->setAttr(name, b.getI64IntegerAttr(kFloat));
}

/// The elements as f32, or null where they are not at hand.
static Attribute widenElements(Attribute value) {
  auto elements = dyn_cast_or_null<DenseFPElementsAttr>(value);
  if (!elements)
    return {};
  return elements.mapValues(Float32Type::get(value.getContext()), [](APFloat element) {
    bool losesInfo = false;
    element.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
    return element.bitcastToAPInt();
  });
}

static bool isKeyOrValue(OpOperand &use) {
  auto attention = dyn_cast<AttentionOp>(use.getOwner());
  return attention && (&use == &attention.getKeyMutable() || &use == &attention.getValueMutable()) &&
         attention.getKey().getDefiningOp<KvAppendOp>() && attention.getValue().getDefiningOp<KvAppendOp>();
}

/// A slot keeps its elements; attention over slots reads them.
void FunctionWidener::visitAppend(KvAppendOp append) {
  castBack(append.getFreshMutable());
  if (isHalfTensor(append.getAll().getType()))
    castForReaders(append.getAll(), isKeyOrValue);
}

/// A function with a state is this project's own: its results may be f32.
void FunctionWidener::visitReturn(func::ReturnOp op) {
  bool hasState = llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<KvType>);
  for (OpOperand &use : op->getOpOperands())
    if (!hasState)
      castBack(use);
  function.setType(FunctionType::get(function.getContext(), function.getArgumentTypes(), op->getOperandTypes()));
}

void FunctionWidener::visit(Operation *op) {
  if (auto append = dyn_cast<KvAppendOp>(op))
    return visitAppend(append);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return visitReturn(ret);
  if (isa<GetParamOp>(op) || (isOp(op, "Gather") && isTable(op->getOpOperand(0))))
    return isolate(op);
  bool isOwn = isa_and_nonnull<HoneDialect>(op->getDialect()) && !isa<KvViewOp, KvReplaceOp>(op);
  bool isNode = onnxir::isOnnxOp(op) || isa<onnxir::YieldOp, tensor::CastOp>(op);
  bool hasOthers =
      llvm::any_of(op->getOperandTypes(), holdsTensors) || llvm::any_of(op->getResultTypes(), holdsTensors);
  Attribute value = op->getAttr("value");
  bool isConstant = isNode && value && isHalfTensor(cast<TypedAttr>(value).getType());
  Attribute wide = isConstant ? widenElements(value) : Attribute();
  if ((!isOwn && !isNode) || hasOthers || (isConstant && !wide))
    return isolate(op);
  if (wide)
    op->setAttr("value", wide);
  widenAttributes(op);
  widenResults(op);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      visit(block);
}

void FunctionWidener::visit(Block &block) {
  bool isEntry = block.getParentOp() == function;
  for (BlockArgument argument : block.getArguments()) {
    if (!isHalfTensor(argument.getType()))
      continue;
    if (isEntry) {
      castForReaders(argument);
    } else {
      narrow[argument] = argument.getType();
      argument.setType(widen(argument.getType()));
    }
  }
  for (Operation &op : llvm::make_early_inc_range(block)) // but for the casts that are put between them
    visit(&op);
}

void FunctionWidener::run() {
  visit(function.getBody().front());
  function.walk([](Operation *op) {
    if (!isOp(op, "Cast") || op->getOperand(0).getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  });
}

//===- The pass ---------------------------------------------------------------------------------------------------===//

/// Whether `op` sums products in a kernel for f32 and has none for 16 bits: what multiplies with weights, and blocks of layers.
static bool isPart(Operation *op) {
  if (isOp(op, "Conv") || isOp(op, "ConvTranspose"))
    return isWeight(op->getOperand(1)) && isHalfTensor(op->getOperand(0).getType());
  auto weighted = dyn_cast<WeightedOpInterface>(op);
  bool multiplies = weighted && !findLookup(op);
  return (multiplies || findInnerGroups(op)) && isHalfTensor(op->getOperand(0).getType());
}

void WidenFloats::runOnOperation() {
  ModuleOp module = getOperation();
  bool hasParts =
      module.walk([](Operation *op) { return isPart(op) ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  if (!hasParts)
    return;
  for (auto &[op, reads] : findReads(module))
    if (auto param = cast<ParamOp>(op); isHalf(param.getTensorType().getElementType()))
      if (failed(widenParameter(param, reads)))
        return signalPassFailure();
  for (auto entry : module.getOps<func::FuncOp>())
    if (!entry.isExternal() && SymbolTable::symbolKnownUseEmpty(entry, module)) {
      FunctionWidener(entry).run();
      ++numWidened;
    }
}

} // namespace hone::raising
