// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors on the host and on the device. What both can read is read twice and not copied: an input is given to the host, and
// brought to the device once by the runtime.

#include "Sides.h"

#include "LinalgToHrt/LoopNest.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace hone {

/// What a tensor of sizes or of answers to checks has at most.
static constexpr int64_t kSmallElements = 256;

MemRefType onDevice(MemRefType type) {
  return MemRefType::get(type.getShape(), type.getElementType(), type.getLayout(),
                         hrt::getDeviceSpace(type.getContext()));
}

bool isSmallInteger(TypeRange types) {
  return llvm::all_of(types, [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() <= kSmallElements &&
           tensor.getElementType().isIntOrIndex();
  });
}

bool isInsertedInto(Value tensor) {
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (auto insert = dyn_cast<tensor::InsertOp>(user); insert && insert.getDest() == tensor)
      return true;
    if (auto loop = dyn_cast<scf::ForOp>(user); loop && isInsertedInto(loop.getTiedLoopRegionIterArg(&use)))
      return true;
    if (auto loop = dyn_cast<scf::WhileOp>(user);
        loop && isInsertedInto(loop.getBeforeArguments()[use.getOperandNumber()]))
      return true;
    if (auto condition = dyn_cast<scf::ConditionOp>(user);
        condition && use.getOperandNumber() > 0 &&
        isInsertedInto(cast<scf::WhileOp>(condition->getParentOp()).getAfterArguments()[use.getOperandNumber() - 1]))
      return true;
  }
  return false;
}

bool SidedTensors::isSource(Operation *op) {
  return isa<bufferization::ToTensorOp, arith::ConstantOp, tensor::EmptyOp>(op);
}

Side SidedTensors::sideOf(Value tensor) const {
  if (auto side = sides.find(tensor); side != sides.end())
    return side->second;
  return Side::Both; // a source
}

void SidedTensors::setResults(Operation *op, Side side) {
  for (Value result : op->getResults())
    set(result, side);
}

/// The memory that a source reads, on the device: an input or a parameter, perhaps transposed.
static Value readOnDevice(OpBuilder &b, Value memory) {
  Operation *copy = b.clone(*memory.getDefiningOp());
  Value result = copy->getResult(0);
  result.setType(onDevice(cast<MemRefType>(result.getType())));
  if (auto transpose = dyn_cast<memref::TransposeOp>(copy)) {
    OpBuilder before(copy);
    transpose.getInMutable().set(readOnDevice(before, transpose.getIn()));
  }
  return result;
}

Value SidedTensors::read(Operation *source, Side side) {
  OpBuilder b(source->getContext());
  b.setInsertionPointAfter(source);
  Location loc = source->getLoc();
  if (auto memory = dyn_cast<bufferization::ToTensorOp>(source)) {
    if (side == Side::Host)
      return memory;
    return bufferization::ToTensorOp::create(b, loc, memory.getType(), readOnDevice(b, memory.getBuffer()),
                                             /*restrict=*/true);
  }
  // Memory of either side is not the other's, which empty tensors of one shape would become.
  if (auto empty = dyn_cast<tensor::EmptyOp>(source); empty && side == Side::Host)
    return bufferization::AllocTensorOp::create(b, loc, empty.getType(), empty.getDynamicSizes());
  if (isa<tensor::EmptyOp>(source) || side == Side::Host)
    return b.clone(*source)->getResult(0);
  auto constant = cast<arith::ConstantOp>(source);
  auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!elements)
    return copy(constant, side);
  Value init = tensor::EmptyOp::create(b, loc, elements.getType().getShape(), elements.getElementType());
  Value element = arith::ConstantOp::create(b, loc, elements.getSplatValue<TypedAttr>());
  return linalg::FillOp::create(b, loc, element, init).getResult(0);
}

Value SidedTensors::copy(Value tensor, Side side) {
  OpBuilder b(tensor.getContext());
  b.setInsertionPointAfterValue(tensor);
  Location loc = tensor.getLoc();
  auto type = cast<RankedTensorType>(tensor.getType());
  Value init = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, tensor), type.getElementType());
  if (init.getType() != type)
    init = tensor::CastOp::create(b, loc, type, init);
  if (side == Side::Device) {
    ++numUploaded;
    return hrt::UploadOp::create(b, loc, type, call, tensor, init).getResult();
  }
  ++numFetched;
  remark::missed(loc, remark::RemarkOpts::name("Fetched").category("hone-place-tensors"))
      << "the host waits for a tensor of the device";
  return hrt::FetchOp::create(b, loc, type, call, tensor, init).getResult();
}

/// Whether threads can share `op`: its positions are independent, and it makes no tensors on the way.
static bool isShareable(linalg::LinalgOp op) {
  if (!isParallel(op))
    return false;
  WalkResult result = op->getRegion(0).walk([](Operation *inner) {
    bool makesTensors = llvm::any_of(inner->getResultTypes(), llvm::IsaPred<ShapedType>);
    return makesTensors ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// Whether `op` computes as few numbers as a batch has tokens: two of its sizes may be any, and the others are small.
static bool areTokens(linalg::LinalgOp op) {
  int64_t known = 1, unknown = 0;
  for (int64_t size : op.getStaticLoopRanges())
    ShapedType::isDynamic(size) ? void(++unknown) : void(known *= size);
  return unknown <= 2 && known <= kSmallElements;
}

bool SidedTensors::isRepeatable(Operation *op) {
  if (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp,
                      tensor::ReshapeOp>(op))
    return isHosts(op->getOperand(0));
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || !isShareable(linalgOp) || !areTokens(linalgOp))
    return false;
  bool readsMore = op->getRegion(0).walk([](tensor::ExtractOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return !readsMore && llvm::all_of(op->getOperands(), [&](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return !type || (type.getElementType().isIntOrIndex() && isHosts(operand));
  });
}

bool SidedTensors::isHosts(Value tensor) {
  if (sideOf(tensor) != Side::Device || origins.contains(tensor))
    return true;
  if (auto known = hosts.find(tensor); known != hosts.end())
    return known->second;
  bool isHost = isRepeatable(tensor.getDefiningOp());
  return hosts[tensor] = isHost;
}

/// Computes on the host what the device has.
Value SidedTensors::repeat(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      mapping.map(operand, get(operand, Side::Host));
  return b.clone(*op, mapping)->getResult(cast<OpResult>(tensor).getResultNumber());
}

/// What `view` shows, of another tensor.
static Value cloneView(Operation *view, Value tensor) {
  OpBuilder b(view);
  Operation *copy = b.clone(*view);
  copy->setOperand(0, tensor);
  return copy->getResult(0);
}

Value SidedTensors::get(Value tensor, Side side) {
  Side there = sideOf(tensor);
  if (there == side)
    return tensor;
  auto [place, isNew] = known.try_emplace({tensor, static_cast<int>(side)});
  if (!isNew)
    return place->second;
  Operation *op = tensor.getDefiningOp();
  Value result;
  if (side == Side::Host && there == Side::Device && isHosts(tensor)) {
    Value origin = origins.lookup(tensor);
    result = origin ? get(origin, side) : repeat(tensor);
  } else if (there != Side::Both) {
    result = copy(tensor, side);
  } else if (isSource(op)) {
    result = read(op, side);
  } else {
    result = cloneView(op, get(op->getOperand(0), side));
  }
  set(result, side);
  if (side == Side::Device)
    origins[result] = tensor;
  return known[{tensor, static_cast<int>(side)}] = result;
}

Value SidedTensors::readJoined(Operation *source) {
  auto memory = dyn_cast<bufferization::ToTensorOp>(source);
  if (!memory)
    return read(source, Side::Device);
  OpBuilder b(source->getContext());
  b.setInsertionPointAfter(source);
  Value buffer = readOnDevice(b, memory.getBuffer());
  buffer = memref::MemorySpaceCastOp::create(b, source->getLoc(), memory.getBuffer().getType(), buffer);
  return bufferization::ToTensorOp::create(b, source->getLoc(), memory.getType(), buffer, /*restrict=*/true);
}

Value SidedTensors::getJoined(Value tensor, Side side) {
  if (side == Side::Host || sideOf(tensor) != Side::Both)
    return get(tensor, side);
  auto [place, isNew] = joined.try_emplace(tensor);
  if (!isNew)
    return place->second;
  Operation *op = tensor.getDefiningOp();
  Value result = isSource(op) ? readJoined(op) : cloneView(op, getJoined(op->getOperand(0), side));
  set(result, side);
  return joined[tensor] = result;
}

StringRef getReasonForHost(linalg::LinalgOp op, ArrayRef<OpOperand *> captured, SidedTensors &tensors) {
  if (!isShareable(op))
    return "its iterations depend on each other or may fail";
  auto isHosts = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return !type || (type.getElementType().isIntOrIndex() && tensors.isHosts(value));
  };
  bool fromHost = llvm::all_of(op->getOperands(), isHosts) &&
                  llvm::all_of(captured, [&](OpOperand *operand) { return isHosts(operand->get()); });
  return fromHost && isSmallInteger(op->getResultTypes()) ? "it makes few integers of the host's" : "";
}

} // namespace hone
