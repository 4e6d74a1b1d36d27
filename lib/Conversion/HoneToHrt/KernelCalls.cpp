// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of kernels: operands and attributes that are given by name, in the order of the kernel's row.

#include "KernelSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/kernels/descriptions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hone {

/// What a kernel takes for an operand that is not given: a scalar, which it does not read.
static Value createAbsent(OpBuilder &b, Location loc) {
  return tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), b.getF32Type());
}

/// A selection and the table of kernels do not agree.
[[noreturn]] static void reject(const KernelCall &kernel, const Twine &reason) {
  llvm::report_fatal_error("call of kernel '" + Twine(kernel.name) + "': " + reason);
}

template <typename Given> static const Given *find(ArrayRef<std::pair<StringRef, Given>> all, StringRef name) {
  const auto *found = llvm::find_if(all, [&](const auto &each) { return each.first == name; });
  return found == all.end() ? nullptr : &found->second;
}

/// The planes of a weight as the kernel's format has them: optional ones, which the weight may not have, are absent then.
static void appendPlanes(OpBuilder &b, Location loc, const KernelCall &kernel, ArrayRef<kernels::Operand> planes,
                         Value weight, SmallVectorImpl<Value> &to) {
  SmallVector<Value> given;
  if (isa_and_nonnull<EncodingInterface>(cast<RankedTensorType>(weight.getType()).getEncoding()))
    llvm::append_range(given, PlanesOp::create(b, loc, weight).getPlanes());
  else
    given.push_back(weight);
  bool isWhole = given.size() == planes.size();
  auto isMissing = [&](const kernels::Operand &plane) { return !isWhole && plane.isOptional; };
  if (given.size() + llvm::count_if(planes, isMissing) != planes.size())
    reject(kernel, "expected a weight of " + Twine(planes.size()) + " planes, but got " + Twine(given.size()));
  const Value *next = given.begin();
  for (const kernels::Operand &plane : planes)
    to.push_back(isMissing(plane) ? createAbsent(b, loc) : *next++);
}

static void appendOperand(OpBuilder &b, Location loc, const KernelCall &kernel, const kernels::Operand &operand,
                          ArrayRef<kernels::Operand> planes, SmallVectorImpl<Value> &to) {
  const Value *given = find<Value>(kernel.operands, operand.name);
  if (given && *given)
    return operand.isWeight ? appendPlanes(b, loc, kernel, planes, *given, to) : to.push_back(*given);
  if (!operand.isOptional)
    reject(kernel, "expected operand '" + Twine(operand.name) + "'");
  for (size_t i = 0, count = operand.isWeight ? planes.size() : 1; i < count; ++i)
    to.push_back(createAbsent(b, loc));
}

/// The numbers that are given, in the order of `names`.
template <typename Number>
static SmallVector<Number> order(const KernelCall &kernel, ArrayRef<std::pair<StringRef, Number>> given,
                                 ArrayRef<std::string_view> names) {
  SmallVector<Number> ordered;
  for (StringRef name : names) {
    const Number *number = find(given, name);
    if (!number)
      reject(kernel, "expected attribute '" + name + "'");
    ordered.push_back(*number);
  }
  if (given.size() != names.size())
    reject(kernel, "expected " + Twine(names.size()) + " attributes, but got " + Twine(given.size()));
  return ordered;
}

hrt::KernelOp createKernel(OpBuilder &b, Location loc, Value call, const KernelCall &kernel) {
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.name);
  if (!info)
    reject(kernel, "no kernel has this name");
  std::vector<kernels::Operand> operands = kernels::operandsOf(*info), planes = kernels::planesOf(*info);
  for (const auto &given : kernel.operands)
    if (llvm::none_of(operands,
                      [&](const kernels::Operand &operand) { return StringRef(operand.name) == given.first; }))
      reject(kernel, "it has no operand '" + given.first + "'");
  SmallVector<Value> inputs, outputs;
  for (const kernels::Operand &operand : operands) {
    const Value *given = find<Value>(kernel.operands, operand.name);
    bool isWritten = operand.isOutput && given && *given; // an absent output is read like any absent operand
    appendOperand(b, loc, kernel, operand, planes, isWritten ? outputs : inputs);
  }
  SmallVector<Type> results;
  for (Value output : outputs)
    if (isa<RankedTensorType>(output.getType()))
      results.push_back(output.getType());
  auto ints = order<int64_t>(kernel, kernel.ints, kernels::integersOf(*info));
  auto floats = order<double>(kernel, kernel.floats, kernels::floatsOf(*info));
  return hrt::KernelOp::create(b, loc, results, call, b.getStringAttr(kernel.name), inputs, outputs,
                               b.getDenseI64ArrayAttr(ints), b.getDenseF64ArrayAttr(floats));
}

Value createKernel(OpBuilder &b, Location loc, Value call, const KernelCall &kernel, Value destination) {
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.name);
  if (!info)
    reject(kernel, "no kernel has this name");
  StringRef output = kernels::operandsOf(*info).back().name;
  KernelCall whole = kernel;
  whole.operands.push_back({output, destination});
  return createKernel(b, loc, call, whole).getResults().back();
}

/// The operands of `op` as its definition lists them; null those that are not given.
static SmallVector<Value> getDefinedOperands(Operation *op) {
  SmallVector<Value> operands;
  std::optional<Attribute> segments = op->getInherentAttr("operandSegmentSizes");
  auto sizes = segments ? dyn_cast_or_null<DenseI32ArrayAttr>(*segments) : DenseI32ArrayAttr();
  if (!sizes)
    return llvm::to_vector_of<Value>(op->getOperands());
  unsigned next = 0;
  for (int32_t size : sizes.asArrayRef())
    operands.push_back(size == 0 ? Value() : op->getOperand(next++));
  return operands;
}

/// An attribute by its name in rows; null where it is not given.
static Attribute getNamed(Operation *op, StringRef name) {
  return op->getInherentAttr(llvm::convertToSnakeFromCamelCase(name)).value_or(Attribute());
}

/// Whether a flag is set, or the value of an integer.
static int64_t getInteger(Attribute attribute) {
  if (auto flag = dyn_cast_or_null<BoolAttr>(attribute))
    return flag.getValue();
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  return integer ? integer.getInt() : static_cast<bool>(attribute);
}

KernelCall selectNamesake(Operation *op, StringRef target) {
  KernelCall kernel{(target + op->getName().stripDialect() + ".f32").str(), {}, {}, {}};
  const kernels::KernelInfo *info =
      isa_and_nonnull<HoneDialect>(op->getDialect()) ? kernels::findKernelInfo(kernel.name) : nullptr;
  if (!info)
    return {};
  for (auto [operand, value] : llvm::zip(kernels::operandsOf(*info), getDefinedOperands(op)))
    kernel.operands.push_back({operand.name, value});
  for (StringRef name : kernels::integersOf(*info))
    kernel.ints.push_back({name, getInteger(getNamed(op, name))});
  for (StringRef name : kernels::floatsOf(*info))
    kernel.floats.push_back({name, cast<FloatAttr>(getNamed(op, name)).getValueAsDouble()});
  return kernel;
}

KernelCall selectMatmul(MatmulOp op, StringRef name) {
  return {name.str(), {{"a", op.getA()}, {"b", op.getB()}}, {{"accumulates", op.getAddend() ? 1 : 0}}, {}};
}

Value createRows(OpBuilder &b, Location loc, Value x, Value weight) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x);
  sizes.back() = b.getIndexAttr(cast<RankedTensorType>(weight.getType()).getDimSize(0));
  return tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
}

Value createProduct(OpBuilder &b, Location loc, Value call, const KernelCall &kernel) {
  Value x = *find<Value>(kernel.operands, "x"), weight = *find<Value>(kernel.operands, "weight");
  return createKernel(b, loc, call, kernel, createRows(b, loc, x, weight));
}

FailureOr<SmallVector<Value>> createDestinations(OpBuilder &b, Operation *op) {
  auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  ReifiedRankedShapedTypeDims shapes;
  if (!reify || failed(reify.reifyResultShapes(b, shapes)))
    return failure();
  SmallVector<Value> destinations;
  for (auto [type, shape] : llvm::zip_equal(op->getResultTypes(), shapes)) {
    Value init = tensor::EmptyOp::create(b, op->getLoc(), shape, cast<RankedTensorType>(type).getElementType());
    destinations.push_back(init.getType() == type ? init : tensor::CastOp::create(b, op->getLoc(), type, init));
  }
  return destinations;
}

SmallVector<Value> createCall(OpBuilder &b, Operation *op, Value call, const KernelCall &kernel) {
  if (kernel.name.empty())
    return {};
  FailureOr<SmallVector<Value>> destinations = createDestinations(b, op);
  if (failed(destinations))
    return {};
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.name);
  if (!info)
    reject(kernel, "no kernel has this name");
  std::vector<kernels::Operand> operands = kernels::operandsOf(*info);
  KernelCall whole = kernel;
  if (const int64_t *accumulates = find<int64_t>(kernel.ints, "accumulates"); accumulates && *accumulates) {
    Type type = destinations->front().getType();
    Value addend = cast<MatmulOp>(op).getAddend();
    destinations->front() = addend.getType() == type ? addend : tensor::CastOp::create(b, op->getLoc(), type, addend);
  }
  for (auto [output, destination] : llvm::zip(ArrayRef(operands).take_back(destinations->size()), *destinations))
    whole.operands.push_back({output.name, destination});
  return llvm::to_vector_of<Value>(createKernel(b, op->getLoc(), call, whole).getResults());
}

SmallVector<Value> createAttention(OpBuilder &b, AttentionOp op, Value call, const KernelCall &kernel) {
  if (kernel.name.empty())
    return {};
  FailureOr<SmallVector<Value>> destinations = createDestinations(b, op);
  if (failed(destinations))
    return {};
  KernelCall whole = kernel;
  whole.operands.push_back({"out", destinations->front()});
  whole.operands.push_back({"lse", op.getLse() ? destinations->back() : Value()});
  auto results = llvm::to_vector_of<Value>(createKernel(b, op.getLoc(), call, whole).getResults());
  std::reverse(results.begin(), results.end()); // kernels have out last
  return results;
}

void replaceByResults(Operation *op, ValueRange results) {
  OpBuilder b(op);
  for (auto [result, replaced] : llvm::zip_equal(results, op->getResults())) {
    bool isSame = result.getType() == replaced.getType();
    replaced.replaceAllUsesWith(isSame ? result : tensor::CastOp::create(b, op->getLoc(), replaced.getType(), result));
  }
  op->erase();
}

int64_t replaceByKernels(func::FuncOp entry, CallBuilder build) {
  int64_t count = 0;
  Value call = entry.getArgument(0);
  entry.walk([&](Operation *op) {
    if (op->getNumResults() == 0)
      return;
    OpBuilder b(op);
    SmallVector<Value> results = build(b, op, call);
    if (results.empty())
      return;
    replaceByResults(op, results);
    ++count;
  });
  return count;
}

SmallVector<Value> asResults(Value result) { return result ? SmallVector<Value>{result} : SmallVector<Value>(); }

} // namespace hone
