// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments and results of a function: names of dimensions become sizes, and results get back the types that the file
// declares where they are true.

#include "Lowering.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// A dimension of an argument that the file gives a name.
struct NamedDimension {
  unsigned argument;
  int64_t dim;
  StringRef text;
};

} // namespace

static SmallVector<NamedDimension> getNamedDimensions(func::FuncOp function) {
  SmallVector<NamedDimension> named;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto names = function.getArgAttrOfType<ArrayAttr>(i, onnxir::kDimsAttr);
    auto type = dyn_cast<RankedTensorType>(function.getArgument(i).getType());
    if (!names || !type || static_cast<int64_t>(names.size()) != type.getRank())
      continue;
    for (auto [dim, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (type.isDynamicDim(dim) && !name.getValue().trim().empty())
        named.push_back({i, static_cast<int64_t>(dim), name.getValue().trim()});
  }
  return named;
}

/// The sum that a name such as "past + sequence" or "2" spells over the names in `symbols`; none if it spells no sum.
static std::optional<Size> parseSum(StringRef text, const llvm::StringMap<Size> &symbols, IndexMath &math) {
  SmallVector<StringRef> terms;
  text.split(terms, '+');
  Size sum = math.constant(0);
  for (StringRef term : terms) {
    int64_t number = 0;
    auto symbol = symbols.find(term.trim());
    if (symbol != symbols.end())
      sum = math.add(sum, symbol->second);
    else if (!term.trim().getAsInteger(10, number) && number >= 0)
      sum = math.add(sum, math.constant(number));
    else
      return std::nullopt;
  }
  return sum;
}

static bool isSum(StringRef text) { return text.contains('+') || llvm::all_of(text, llvm::isDigit); }

static void checkSum(Lowerer &lowerer, func::FuncOp function, const NamedDimension &named, Size size, Size sum) {
  Builder &b = lowerer.b;
  auto name = function.getArgAttrOfType<StringAttr>(named.argument, onnxir::kNameAttr);
  std::string message = "input '" + (name ? name.getValue() : "").str() + "': expected dimension " +
                        std::to_string(named.dim) + " to be " + named.text.str();
  Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lowerer.math.value(size), lowerer.math.value(sum));
  hrt::CheckOp::create(b, same, message, ValueRange());
}

/// Dimensions of one name are one size, which the runtime checks on every call; those whose name spells a sum of names or
/// a number are checked here, and are that sum.
static void bindDimensions(func::FuncOp function, ArrayRef<Value> arguments, Lowerer &lowerer) {
  llvm::StringMap<Size> symbols;
  SmallVector<NamedDimension> named = getNamedDimensions(function);
  SmallVector<SmallVector<Size>> sizes(arguments.size());
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (isa<RankedTensorType>(argument.getType()))
      sizes[i] = lowerer.sizes(argument);
  for (const NamedDimension &dimension : named) {
    Size &size = sizes[dimension.argument][dimension.dim];
    if (!isSum(dimension.text))
      size = symbols.try_emplace(dimension.text, size).first->second;
  }
  for (const NamedDimension &dimension : named) {
    Size &size = sizes[dimension.argument][dimension.dim];
    std::optional<Size> sum = isSum(dimension.text) ? parseSum(dimension.text, symbols, lowerer.math) : std::nullopt;
    if (!sum)
      continue;
    checkSum(lowerer, function, dimension, size, *sum);
    size = *sum;
  }
  for (auto [argument, known] : llvm::zip(arguments, sizes))
    if (isa<RankedTensorType>(argument.getType())) {
      lowerer.setSizes(argument, known);
      lowerer.trustSizes(known);
    }
}

/// `value` with the fixed sizes that its named dimensions turned out to have.
static Value refine(Value value, Lowerer &lowerer) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return value;
  SmallVector<Size> sizes = lowerer.sizes(value);
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  if (type.getShape() == ArrayRef(shape))
    return value;
  Value refined = tensor::CastOp::create(lowerer.b, RankedTensorType::get(shape, type.getElementType()), value);
  lowerer.setSizes(refined, sizes);
  return refined;
}

void lowerArguments(func::FuncOp function, Block &from, Block &into, Lowerer &lowerer) {
  SmallVector<Value> arguments;
  for (BlockArgument argument : from.getArguments()) {
    arguments.push_back(into.addArgument(withoutSign(argument.getType()), argument.getLoc()));
    function.setArgAttr(argument.getArgNumber(), onnxir::kSourceTypeAttr, TypeAttr::get(argument.getType()));
  }
  lowerer.b.setInsertionPointToEnd(&into);
  bindDimensions(function, arguments, lowerer);
  for (auto [argument, value] : llvm::zip(from.getArguments(), arguments))
    lowerer.map(argument, refine(value, lowerer));
}

/// A check at run time that `size` is `fixed`. As soon as the size is known: the cast that needs it may be folded into what computes
/// the elements, which takes the fixed size then.
static void requireFixed(Builder &b, Value size, int64_t fixed, StringRef message) {
  OpBuilder::InsertionGuard guard(b);
  if (Operation *definition = size.getDefiningOp(); definition && definition->getBlock() == b.getInsertionBlock())
    b.setInsertionPointAfter(definition);
  Value expected = arith::ConstantIndexOp::create(b, fixed);
  Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, size, expected);
  hrt::CheckOp::create(b, same, message, size);
}

Value Lowerer::castTo(Value value, Type declared, const Twine &what) {
  auto wanted = dyn_cast<RankedTensorType>(declared), type = dyn_cast<RankedTensorType>(value.getType());
  if (!wanted || !type || wanted == type || wanted.getElementType() != type.getElementType() ||
      failed(verifyCompatibleShape(wanted.getShape(), type.getShape())))
    return value;
  SmallVector<Size> known = sizes(value);
  for (auto [dim, size] : llvm::enumerate(known)) {
    if (wanted.isDynamicDim(dim) || IndexMath::getConstant(size))
      continue;
    std::string message =
        (what + ": expected dimension " + Twine(dim) + " to be " + Twine(wanted.getDimSize(dim)) + ", but got {}")
            .str();
    requireFixed(b, math.value(size), wanted.getDimSize(dim), message);
    size = b.getIndexAttr(wanted.getDimSize(dim));
  }
  Value cast = tensor::CastOp::create(b, wanted, value);
  setSizes(cast, known);
  return cast;
}

void lowerResults(func::FuncOp function, Operation *terminator, Lowerer &lowerer) {
  SmallVector<Value> values;
  for (auto [i, operand] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(i, onnxir::kNameAttr);
    std::string what = "output '" + (name ? name.getValue().str() : std::to_string(i)) + "'";
    values.push_back(lowerer.castTo(lowerer.lookUp(operand), withoutSign(operand.getType()), what));
    function.setResultAttr(i, onnxir::kSourceTypeAttr, TypeAttr::get(operand.getType()));
  }
  func::ReturnOp::create(lowerer.b, terminator->getLoc(), values);
}

} // namespace hone::lowering
