// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What callers have to know of tables: which rows there are for the elements of an input, and for how many positions. What
// is outside of a table is not looked up at all: the runtime refuses it when it is called.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/Lookups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_BOUNDLOOKUPS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

using analysis::Atom;
using analysis::Expression;
using analysis::ExpressionKind;

namespace {

/// Rows of a table, by numbers.
struct Lookup {
  Value numbers;
  int64_t rows = 0;
  std::string table;
};

/// Rows of a table from `start` on, as many as sizes say, or all that there are if those are fewer.
struct Cut {
  Polynomial wanted;
  int64_t start = 0, rows = 0;
  std::string table;
};

class LookupBounder {
public:
  explicit LookupBounder(func::FuncOp function) : function(function), analysis(function) { nameSizes(); }
  /// Number of tables whose bounds are known.
  unsigned run();

private:
  void nameSizes();
  bool boundElements(const Lookup &lookup);
  bool boundPositions(const Lookup &lookup);
  void findCuts(Operation &slice);
  unsigned boundCuts();
  bool addLimit(const Polynomial &positions, int64_t rows, StringRef table);
  std::optional<Polynomial> getUpperBound(const Polynomial &number);
  std::optional<Polynomial> getUpperBound(Atom atom);

  func::FuncOp function;
  SymbolicAnalysis analysis;
  llvm::DenseMap<Atom, StringRef> sizes; // that the caller decides, by the names of inputs' dimensions
  llvm::MapVector<BlockArgument, LookupRows> inputs;
  SmallVector<PositionLimit> limits;
  llvm::DenseMap<Atom, Cut> cuts; // by how many rows there are in them
};

} // namespace

static std::string nameTable(Value table, Operation &reader) {
  auto param = table.getDefiningOp<GetParamOp>();
  auto node = dyn_cast<NameLoc>(reader.getLoc());
  return param ? param.getName().str() : node ? node.getName().str() : "a table";
}

static std::optional<Lookup> matchLookup(Operation &op) {
  Value table;
  int64_t axis = 0;
  Lookup lookup;
  if (std::optional<WeightUse> use = findLookup(&op)) {
    table = use->weight->get();
    lookup.numbers = use->read->get();
  } else if (isOp(&op, "Gather")) {
    table = op.getOperand(0);
    lookup.numbers = op.getOperand(1);
    axis = getInteger(&op, "axis", 0);
  }
  RankedTensorType type = table ? getRankedType(table) : RankedTensorType();
  if (!type || type.getRank() == 0)
    return std::nullopt;
  axis = axis < 0 ? axis + type.getRank() : axis;
  if (axis < 0 || axis >= type.getRank() || type.isDynamicDim(axis) || type.getDimSize(axis) == 0)
    return std::nullopt;
  lookup.rows = type.getDimSize(axis);
  lookup.table = nameTable(table, op);
  return lookup;
}

void LookupBounder::nameSizes() {
  auto name = [&](StringRef size) { sizes[analysis.expressions.namedSize(size)] = size; };
  name(analysis::kHeldLengthName);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto names = function.getArgAttrOfType<ArrayAttr>(i, onnxir::kDimsAttr))
      for (auto dim : names.getAsRange<StringAttr>())
        if (!dim.empty() && !dim.getValue().contains('+') && !dim.getValue().contains('*'))
          name(dim.getValue());
}

//===----------------------------------------------------------------------===//
// Elements of inputs
//===----------------------------------------------------------------------===//

namespace {
/// What is added to one integer everywhere.
struct Summand {
  Value operand;
  int64_t constant = 0;
};
} // namespace

static std::optional<Summand> matchSum(Operation *op, SymbolicAnalysis &analysis) {
  if (!isOp(op, "Add"))
    return std::nullopt;
  for (unsigned side : {1u, 0u}) {
    const Expression *element = analysis.getElement(op->getOperand(side));
    if (element && element->kind == ExpressionKind::Integer)
      if (std::optional<int64_t> constant = element->polynomial.getConstant())
        return Summand{op->getOperand(1 - side), *constant};
  }
  return std::nullopt;
}

/// The input whose every element plus `offset` is in `numbers`, in whatever order; null where there is none.
static BlockArgument findInput(Value numbers, int64_t &offset, SymbolicAnalysis &analysis) {
  while (Operation *op = numbers.getDefiningOp()) {
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      numbers = cast.getSource();
      continue;
    }
    std::optional<Summand> sum = matchSum(op, analysis);
    bool moves =
        llvm::any_of(ArrayRef<StringRef>{"Reshape", "Flatten", "Unsqueeze", "Squeeze", "Transpose", "Identity"},
                     [&](StringRef opType) { return isOp(op, opType); });
    // Between integers of 32 and 64 bits nothing that numbers a row changes.
    bool widens = isOp(op, "Cast") && getRankedType(op->getOperand(0)) && !isFloat(op->getOperand(0));
    if (!sum && !moves && !widens)
      return {};
    offset += sum ? sum->constant : 0;
    numbers = sum ? sum->operand : op->getOperand(0);
  }
  return cast<BlockArgument>(numbers);
}

bool LookupBounder::boundElements(const Lookup &lookup) {
  int64_t offset = 0;
  BlockArgument input = findInput(lookup.numbers, offset, analysis);
  if (!input)
    return false;
  RankedTensorType type = getRankedType(input);
  bool isNumber = type && (type.getElementType().isSignlessInteger(32) || type.getElementType().isSignlessInteger(64));
  if (!isNumber)
    return false;
  LookupRows bounds = {lookup.rows, offset};
  auto [known, isNew] = inputs.try_emplace(input, bounds);
  if (!isNew && bounds.end() < known->second.end())
    known->second = bounds;
  return true;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// The largest value of an atom, over sizes that the caller decides.
std::optional<Polynomial> LookupBounder::getUpperBound(Atom atom) {
  if (sizes.contains(atom))
    return Polynomial::of(atom);
  const analysis::AtomInfo &info = analysis.expressions.info(atom);
  if (info.upper)
    return getUpperBound(*info.upper);
  const Expression *definition = info.definition;
  bool isClamped =
      definition && definition->isCall("Max") && definition->operands.size() == 2 &&
      llvm::all_of(definition->operands, [](const Expression *one) { return one->kind == ExpressionKind::Integer; }) &&
      definition->operands[1]->polynomial.isConstant(0);
  return isClamped ? getUpperBound(definition->operands[0]->polynomial) : std::nullopt;
}

/// The largest value of `number`, attained where indices are at their ends and nothing is padding.
std::optional<Polynomial> LookupBounder::getUpperBound(const Polynomial &number) {
  Polynomial sum;
  for (const Polynomial::Term &term : number.getTerms()) {
    if (term.atoms.empty()) {
      sum = sum + term.coefficient;
      continue;
    }
    if (term.atoms.size() != 1)
      return std::nullopt;
    Atom atom = term.atoms.front();
    const analysis::AtomInfo &info = analysis.expressions.info(atom);
    auto isPadding = [&] {
      return info.definition && info.definition->kind == ExpressionKind::Load &&
             info.definition->source.getDefiningOp<tensor::GenerateOp>();
    };
    if (term.coefficient < 0 && info.nonNegative && (info.upper || isPadding()))
      continue;
    std::optional<Polynomial> largest = term.coefficient > 0 ? getUpperBound(atom) : std::nullopt;
    if (!largest)
      return std::nullopt;
    sum = sum + *largest * term.coefficient;
  }
  return sum;
}

bool LookupBounder::boundPositions(const Lookup &lookup) {
  const Expression *number = analysis.getElement(lookup.numbers);
  if (!number || number->kind != ExpressionKind::Integer)
    return false;
  std::optional<Polynomial> last = getUpperBound(number->polynomial);
  if (!last)
    return false;
  return addLimit(*last + 1, lookup.rows, lookup.table);
}

/// Says that `positions` are at most `rows`; false if they are no sum of sizes that the caller decides and of a constant.
bool LookupBounder::addLimit(const Polynomial &positions, int64_t rows, StringRef table) {
  PositionLimit limit = {{}, rows, table.str()};
  for (const Polynomial::Term &term : positions.getTerms()) {
    auto size = term.atoms.size() == 1 ? sizes.find(term.atoms.front()) : sizes.end();
    if (!term.atoms.empty() && (size == sizes.end() || term.coefficient != 1))
      return false;
    if (term.atoms.empty())
      limit.most -= term.coefficient;
    else
      limit.sizes.push_back(size->second.str());
  }
  if (limit.sizes.empty() || limit.most < 0)
    return false;
  llvm::sort(limit.sizes);
  auto same = llvm::find_if(limits, [&](const PositionLimit &other) { return other.sizes == limit.sizes; });
  if (same == limits.end())
    limits.push_back(std::move(limit));
  else if (limit.most < same->most)
    *same = std::move(limit);
  return true;
}

//===----------------------------------------------------------------------===//
// Tables that are cut
//===----------------------------------------------------------------------===//

void LookupBounder::findCuts(Operation &slice) {
  Value table = slice.getOperand(0), result = slice.getResult(0);
  auto from = analysis.getShape(table), to = analysis.getShape(result);
  auto starts = slice.getNumOperands() > 1 ? analysis.getContents(slice.getOperand(1)) : std::nullopt;
  Value given = getOperand(&slice, 3);
  auto axes = given ? analysis.getConstants(given) : std::nullopt;
  if (!from || !to || !starts || (given && (!axes || axes->size() != starts->size())))
    return;
  for (auto [i, start] : llvm::enumerate(*starts)) {
    int64_t axis = axes ? (*axes)[i] : i, rank = from->size();
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank)
      continue;
    std::optional<int64_t> rows = (*from)[axis].getConstant(), first = start.getConstant();
    std::optional<Atom> size = (*to)[axis].getAtom();
    std::optional<Polynomial> wanted = size ? analysis.expressions.info(*size).upper : std::nullopt;
    // One row that is left over could be broadcast.
    if (!rows || !first || !wanted || *first < 0 || *first > *rows - 2)
      continue;
    Cut cut = {*wanted, *first, *rows, nameTable(table, slice)};
    for (Operation *user : result.getUsers()) // what cut numbers are rows of
      if (std::optional<Lookup> lookup = matchLookup(*user); lookup && lookup->numbers == result)
        cut.table = lookup->table;
    cuts[*size] = std::move(cut);
  }
}

/// Bounds the cuts that are broadcast to as many rows as were wanted: with fewer, there is no common shape.
unsigned LookupBounder::boundCuts() {
  Block &body = function.getBody().front();
  for (Operation &op : body)
    if (isOp(&op, "Slice"))
      findCuts(op);
  unsigned count = 0;
  for (Operation &op : body) {
    if (cuts.empty() || !analysis::isBroadcast(&op))
      continue;
    auto whole = analysis.getShape(op.getResult(0));
    for (Value operand : op.getOperands()) {
      auto part = analysis.getShape(operand);
      if (!whole || !part)
        continue;
      for (auto [there, wanted] : llvm::zip(llvm::reverse(*part), llvm::reverse(*whole))) {
        std::optional<Atom> size = there.getAtom();
        auto cut = size ? cuts.find(*size) : cuts.end();
        if (cut == cuts.end() || cut->second.wanted != wanted)
          continue;
        count += addLimit(wanted + cut->second.start, cut->second.rows, cut->second.table);
        cuts.erase(cut);
      }
    }
  }
  return count;
}

unsigned LookupBounder::run() {
  unsigned count = 0;
  for (Operation &op : function.getBody().front())
    if (std::optional<Lookup> lookup = matchLookup(op))
      count += boundElements(*lookup) || boundPositions(*lookup);
  count += boundCuts();
  for (auto &[input, rows] : inputs)
    function.setArgAttr(input.getArgNumber(), kLookupRowsAttrName, rows.toAttribute(function.getContext()));
  if (!limits.empty())
    function->setAttr(kPositionLimitsAttrName, toAttribute(limits, function.getContext()));
  return count;
}

namespace {
struct BoundLookups : impl::BoundLookupsBase<BoundLookups> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function.isPrivate())
        numBounded += LookupBounder(function).run();
  }
};
} // namespace

} // namespace hone::raising
