// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First everything that reads a weight is looked at, then all of it is changed or nothing.

#include "IntegerNodes.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/Builders.h"

#include "onnx/onnx_pb.h"

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kMicrosoft = "com.microsoft";

/// The bytes of each plane of a parameter, as they are stored or will be.
static FailureOr<SmallVector<SmallVector<char, 0>>> readPlanes(ParamOp param) {
  if (isa<ConvertedAttr>(param.getStorage()))
    return convertPlanes(param);
  FailureOr<SmallVector<StoredBytes>> stored = openPlanes(param);
  if (failed(stored))
    return failure();
  SmallVector<SmallVector<char, 0>> bytes;
  for (const StoredBytes &plane : *stored)
    bytes.emplace_back(plane.get().begin(), plane.get().end());
  return bytes;
}

static int64_t getInteger(Operation *op, StringRef name, int64_t otherwise) {
  auto integer = op->getAttrOfType<IntegerAttr>(name);
  return integer ? integer.getInt() : otherwise;
}

static bool isNode(Operation *op, StringRef type) {
  return onnxir::isOnnxOp(op) && onnxir::getDomain(op).empty() && onnxir::getOpType(op) == type;
}

static bool isOne(Operation *op, StringRef name) {
  auto real = op->getAttrOfType<FloatAttr>(name);
  return !real || real.getValueAsDouble() == 1;
}

static bool isDequantized(AffineAttr affine) { return affine.getBits() == 8 && affine.getGroup() == 0; }

/// Whether MatMulNBits has such codes.
static bool isBlocked(AffineAttr affine) {
  constexpr int64_t leastBlock = 16;
  bool isWidth = affine.getBits() == 4 || affine.getBits() == 8;
  return isWidth && affine.getGroup() >= leastBlock && llvm::isPowerOf2_64(affine.getGroup());
}

namespace {
/// A weight and the nodes of a module that read it.
class IntegerNodes {
public:
  IntegerNodes(SymbolTable &symbols, ParamOp param, ParamOp quantized, bool isTransposed)
      : symbols(symbols), param(param), affine(cast<AffineAttr>(quantized.getTensorType().getEncoding())),
        outputs(quantized.getTensorType().getDimSize(0)), inputs(quantized.getTensorType().getDimSize(1)),
        isTransposed(isTransposed), b(param) {
    param->getParentOfType<ModuleOp>().walk([&](GetParamOp read) {
      if (read.getName() == param.getSymName())
        reads.push_back(read);
    });
  }

  std::string getBlocker() const;
  void replace(ArrayRef<SmallVector<char, 0>> planes);

private:
  std::string getBlocker(OpOperand &use, bool isSwapped) const;
  std::string getGatherBlocker(Operation *gather) const;

  /// Names a parameter of the type with the bytes.
  ParamOp addParameter(StringRef what, RankedTensorType type, ArrayRef<char> bytes);
  ParamOp addScales(ArrayRef<char> bytes, ArrayRef<int64_t> shape, Type elements);
  void dequantize(ArrayRef<SmallVector<char, 0>> planes);
  ParamOp addBytes(ArrayRef<char> codes);
  void replaceByBlocks(ArrayRef<SmallVector<char, 0>> planes);
  void replaceUse(OpOperand &use, ArrayRef<ParamOp> planes);
  Value createNode(OpBuilder &at, Location loc, StringRef domain, StringRef type, ValueRange operands, Type result,
                   ArrayRef<NamedAttribute> attributes) const;
  Value read(OpBuilder &at, Location loc, ParamOp plane) const {
    return GetParamOp::create(at, loc, plane.getTensorType(), plane.getSymName());
  }
  NamedAttribute integer(StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); }

  SymbolTable &symbols;
  ParamOp param;
  AffineAttr affine;
  int64_t outputs, inputs;
  bool isTransposed;
  OpBuilder b;
  SmallVector<GetParamOp> reads;
};
} // namespace

//===----------------------------------------------------------------------===//
// What can be
//===----------------------------------------------------------------------===//

std::string IntegerNodes::getGatherBlocker(Operation *gather) const {
  if (isTransposed || getInteger(gather, "axis", 0) != 0)
    return "a Gather reads its columns";
  return inputs % affine.getGroup() ? "a Gather reads it, and its rows are no whole groups" : "";
}

/// `isSwapped`: the node reads the weight transposed.
std::string IntegerNodes::getBlocker(OpOperand &use, bool isSwapped) const {
  Operation *op = use.getOwner();
  bool isInputsFirst = isTransposed != isSwapped, isSecond = use.getOperandNumber() == 1;
  if (isNode(op, "Transpose") && !isSwapped && op->hasOneUse())
    return getBlocker(*op->getResult(0).use_begin(), true);
  if (isNode(op, "Gather") && !isSwapped && use.getOperandNumber() == 0)
    return getGatherBlocker(op);
  if (isNode(op, "MatMul") && isSecond && isInputsFirst)
    return "";
  bool takesRows = !getInteger(op, "transA", 0) && isOne(op, "alpha") && isOne(op, "beta");
  auto bias = isNode(op, "Gemm") && op->getNumOperands() > 2 ? dyn_cast<RankedTensorType>(op->getOperand(2).getType())
                                                             : RankedTensorType();
  bool hasBias = isNode(op, "Gemm") && op->getNumOperands() > 2 && !onnxir::isAbsent(op->getOperand(2));
  bool isVector = !hasBias || (bias && bias.getRank() == 1 && bias.getDimSize(0) == outputs);
  if (isNode(op, "Gemm") && isSecond && takesRows && isVector && isInputsFirst != (getInteger(op, "transB", 0) != 0))
    return "";
  return ("the node " + (onnxir::isOnnxOp(op) ? onnxir::getOpType(op) : op->getName().getStringRef()) +
          " that reads it has no form for integers")
      .str();
}

std::string IntegerNodes::getBlocker() const {
  constexpr int64_t leastOpset = 13; // the first with an axis
  if (isDequantized(affine))
    return reads.empty() || onnxir::getOpsetVersion(param, "") >= leastOpset
               ? ""
               : "DequantizeLinear has scales a row from opset 13 on";
  for (GetParamOp get : reads)
    for (OpOperand &use : get->getUses())
      if (std::string blocker = getBlocker(use, false); !blocker.empty())
        return blocker;
  return "";
}

//===----------------------------------------------------------------------===//
// Replacing
//===----------------------------------------------------------------------===//

ParamOp IntegerNodes::addParameter(StringRef what, RankedTensorType type, ArrayRef<char> bytes) {
  auto added = ParamOp::create(b, param.getLoc(), (param.getSymName() + what).str(), type, makeResource(type, bytes));
  symbols.insert(added);
  return added;
}

ParamOp IntegerNodes::addScales(ArrayRef<char> bytes, ArrayRef<int64_t> shape, Type elements) {
  auto type = RankedTensorType::get(shape, elements);
  PlainElements from(affine.getScales()), to(type.getElementType());
  SmallVector<char, 0> scales(getDenseBytes(type).value_or(0));
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    to.store(scales, i, from.load(bytes, i));
  return addParameter("_scale", type, scales);
}

Value IntegerNodes::createNode(OpBuilder &at, Location loc, StringRef domain, StringRef type, ValueRange operands,
                               Type result, ArrayRef<NamedAttribute> attributes) const {
  OperationState state(loc, onnxir::getOperationName(domain, type));
  state.addOperands(operands);
  state.addAttributes(attributes);
  state.addTypes(result);
  return at.create(state)->getResult(0);
}

/// Codes counted from 0 as they are, or where 128 stands for 0 as signed ones; in the order of the file's elements.
ParamOp IntegerNodes::addBytes(ArrayRef<char> codes) {
  bool isSigned = !affine.getHasZeros();
  SmallVector<char, 0> bytes(codes.size());
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) {
      char code = codes[n * inputs + k];
      bytes[isTransposed ? k * outputs + n : n * inputs + k] = isSigned ? static_cast<char>(code ^ 0x80) : code;
    }
  Type byte = isSigned ? b.getIntegerType(8) : b.getIntegerType(8, /*isSigned=*/false);
  return addParameter("_quantized", RankedTensorType::get(param.getTensorType().getShape(), byte), bytes);
}

void IntegerNodes::dequantize(ArrayRef<SmallVector<char, 0>> planes) {
  // Scales are of the type of the activations, where the operator takes such.
  constexpr int64_t leastOpsetOfHalves = 19;
  Type elements = param.getTensorType().getElementType(), scales = elements;
  if (onnxir::getOpsetVersion(param, "") < leastOpsetOfHalves)
    scales = b.getF32Type();
  SmallVector<ParamOp> parts{addBytes(planes[0]), addScales(planes[1], {outputs}, scales)};
  if (affine.getHasZeros())
    parts.push_back(addParameter("_zero_point",
                                 RankedTensorType::get({outputs}, b.getIntegerType(8, /*isSigned=*/false)), planes[2]));
  for (GetParamOp get : reads) {
    OpBuilder at(get);
    SmallVector<Value> operands;
    for (ParamOp part : parts)
      operands.push_back(read(at, part.getLoc(), part));
    auto name = [&](StringRef type) { return NameLoc::get(b.getStringAttr(param.getSymName() + "/" + type)); };
    auto type = RankedTensorType::get(cast<RankedTensorType>(get.getType()).getShape(), scales);
    Value node = createNode(at, name("DequantizeLinear"), "", "DequantizeLinear", operands, type,
                            integer("axis", isTransposed ? 1 : 0));
    if (scales != elements)
      node = createNode(at, name("Cast"), "", "Cast", node, get.getType(),
                        integer("to", elements.isF16() ? ::onnx::TensorProto::FLOAT16 : ::onnx::TensorProto::BFLOAT16));
    get.replaceAllUsesWith(node);
  }
}

void IntegerNodes::replaceUse(OpOperand &use, ArrayRef<ParamOp> planes) {
  Operation *op = use.getOwner();
  if (isNode(op, "Transpose")) {
    replaceUse(*op->getResult(0).use_begin(), planes);
    op->erase();
    return;
  }
  bool isGather = isNode(op, "Gather");
  OpBuilder at(op);
  SmallVector<Value> operands{op->getOperand(isGather ? 1 : 0)};
  for (ParamOp plane : planes)
    operands.push_back(read(at, plane.getLoc(), plane));
  SmallVector<NamedAttribute> attributes{integer("bits", affine.getBits()), integer("block_size", affine.getGroup())};
  if (isGather) {
    std::swap(operands[0], operands[1]);
    attributes.append({integer("gather_axis", 0), integer("quantize_axis", 1)});
  } else {
    attributes.append({integer("K", inputs), integer("N", outputs)});
    if (affine.getActivations() == 8)
      attributes.push_back(integer("accuracy_level", 4)); // onnxruntime's word for activations of 8 bits
    if (Value bias = op->getNumOperands() > 2 ? op->getOperand(2) : Value(); bias && !onnxir::isAbsent(bias)) {
      for (size_t given = operands.size(); given < 5; ++given)
        operands.push_back(onnxir::NoValueOp::create(at, op->getLoc(), b.getNoneType()));
      operands.push_back(bias);
    }
  }
  Value node = createNode(at, op->getLoc(), kMicrosoft, isGather ? "GatherBlockQuantized" : "MatMulNBits", operands,
                          op->getResult(0).getType(), attributes);
  op->getResult(0).replaceAllUsesWith(node);
  op->erase();
}

void IntegerNodes::replaceByBlocks(ArrayRef<SmallVector<char, 0>> planes) {
  int64_t groups = affine.getGroups({outputs, inputs}), block = affine.getGroup() * affine.getBits() / 8;
  auto byte = b.getIntegerType(8, /*isSigned=*/false);
  // A Gather's table has two dimensions where a product's weight has three: the same bytes under two names.
  ParamOp products[3], tables[3];
  auto getPlanes = [&](bool isTable) {
    ParamOp *parts = isTable ? tables : products;
    if (!parts[0]) {
      SmallVector<int64_t> shape{outputs, groups * block};
      if (!isTable)
        shape = {outputs, groups, block};
      parts[0] = addParameter(isTable ? "_table" : "_blocks", RankedTensorType::get(shape, byte), planes[0]);
      parts[1] = addScales(planes[1], {outputs, groups}, param.getTensorType().getElementType());
      if (affine.getHasZeros())
        parts[2] = addParameter(
            "_zero_point", RankedTensorType::get({outputs, static_cast<int64_t>(planes[2].size()) / outputs}, byte),
            planes[2]);
    }
    return ArrayRef<ParamOp>(parts, affine.getHasZeros() ? 3 : 2);
  };
  for (GetParamOp get : reads)
    for (OpOperand &use : llvm::make_early_inc_range(get->getUses()))
      replaceUse(use, getPlanes(isNode(use.getOwner(), "Gather")));
}

void IntegerNodes::replace(ArrayRef<SmallVector<char, 0>> planes) {
  if (isDequantized(affine))
    dequantize(planes);
  else
    replaceByBlocks(planes);
  for (GetParamOp get : reads)
    get->erase();
  symbols.erase(param);
}

FailureOr<std::string> replaceByIntegers(SymbolTable &symbols, ParamOp param, ParamOp quantized, bool isTransposed) {
  auto affine = cast<AffineAttr>(quantized.getTensorType().getEncoding());
  if (!isDequantized(affine) && !isBlocked(affine))
    return quantized.emitError()
           << "cannot export codes of " << affine.getBits() << " bits in groups of " << affine.getGroup()
           << " inputs; ONNX has nodes for 8 bits without groups, and for 4 and 8 bits in groups of "
              "32, 64 or 128";
  IntegerNodes nodes(symbols, param, quantized, isTransposed);
  if (std::string blocker = nodes.getBlocker(); !blocker.empty())
    return blocker;
  FailureOr<SmallVector<SmallVector<char, 0>>> planes = readPlanes(quantized);
  if (failed(planes))
    return failure();
  nodes.replace(*planes);
  return std::string();
}

} // namespace hone
