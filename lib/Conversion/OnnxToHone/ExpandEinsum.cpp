// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Einsum as products of matrices: labels that both operands and the result have are a batch, those that only the operands
// have are multiplied and summed, those of one operand are rows or columns.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Onnx/EinsumEquation.h"

#include "llvm/ADT/SetVector.h"

namespace hone {
#define GEN_PASS_DEF_EXPANDEINSUM
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-expand-einsum";

namespace {

using Label = onnxir::EinsumEquation::Label;
using Labels = SmallVector<Label>;

/// A tensor and the label of each of its dimensions, all different.
struct Term {
  Value value;
  Labels labels;
};

/// The labels of one product `[batch, rows, inner] x [batch, inner, columns]`, in the order in which they are merged.
struct ProductPlan {
  bool isSwapped = false; // the second term has the rows
  Labels batch, rows, columns, inner;

  /// Dimensions with the labels that each is made of. Without a batch, rows need not be merged.
  SmallVector<Labels> groupLeft() const { return group(rows, inner, /*mergesFirst=*/!batch.empty() || rows.empty()); }
  SmallVector<Labels> groupRight() const { return group(inner, columns, /*mergesFirst=*/true); }
  SmallVector<Labels> groupResult() const {
    return group(rows, columns, /*mergesFirst=*/!batch.empty() || rows.empty());
  }

private:
  SmallVector<Labels> group(const Labels &first, const Labels &second, bool mergesFirst) const;
};

class EinsumExpansion {
public:
  explicit EinsumExpansion(Operation *op) : op(op), b(op), onnx(b, op->getLoc()) {}
  /// Replaces the node. Fails, before anything was built, with a reason.
  LogicalResult run(StringRef &reason);

private:
  LogicalResult read(StringRef &reason);
  LogicalResult readSizes(StringRef &reason);
  LogicalResult planAll(StringRef &reason);
  std::optional<ProductPlan> plan(const Term &a, const Term &b, const llvm::SetVector<Label> &kept, bool isLast,
                                  StringRef &reason);
  int64_t sizeOf(const Labels &group) const;
  std::optional<SmallVector<int64_t>> getTarget(ArrayRef<Labels> from, ArrayRef<Labels> to) const;
  Value arrange(const Term &term, ArrayRef<Labels> groups);
  Value regroup(Value value, ArrayRef<Labels> from, ArrayRef<Labels> to);
  Operation *findBias(const ProductPlan &plan, Value right);
  Value multiply(const ProductPlan &plan, const Term &a, const Term &b);

  Operation *op;
  OpBuilder b;
  OnnxBuilder onnx;
  SmallVector<Term> terms;
  Labels output;
  llvm::DenseMap<Label, int64_t> sizes;
  std::vector<ProductPlan> plans; // from left to right
};

} // namespace

static SmallVector<Labels> eachAlone(ArrayRef<Label> labels) {
  return llvm::map_to_vector(labels, [](Label label) { return Labels{label}; });
}

static Labels concatenate(ArrayRef<Labels> groups) {
  Labels labels;
  for (const Labels &group : groups)
    llvm::append_range(labels, group);
  return labels;
}

SmallVector<Labels> ProductPlan::group(const Labels &first, const Labels &second, bool mergesFirst) const {
  SmallVector<Labels> groups = eachAlone(batch);
  if (mergesFirst)
    groups.push_back(first);
  else
    llvm::append_range(groups, eachAlone(first));
  groups.push_back(second);
  return groups;
}

//===----------------------------------------------------------------------===//
// What the node means
//===----------------------------------------------------------------------===//

LogicalResult EinsumExpansion::read(StringRef &reason) {
  SmallVector<int64_t> ranks;
  for (Value operand : op->getOperands()) {
    if (!isFloat(operand))
      return reason = "its operands are not floats of known rank", failure();
    ranks.push_back(getRank(operand));
  }
  auto text = op->getAttrOfType<StringAttr>("equation");
  std::string error;
  auto equation = text ? onnxir::EinsumEquation::parse(text, ranks, error) : std::nullopt;
  if (!equation)
    return reason = "its equation does not fit its operands", failure();
  if (ranks.size() < 2)
    return reason = "it has one operand", failure();
  for (auto [operand, labels] : llvm::zip_equal(op->getOperands(), equation->terms)) {
    if (llvm::SetVector<Label>(labels.begin(), labels.end()).size() != labels.size())
      return reason = "it takes a diagonal", failure();
    terms.push_back({operand, labels});
  }
  output = equation->output;
  return readSizes(reason);
}

/// The size of each label. A dimension of 1 may be repeated along a label, which products do not do.
LogicalResult EinsumExpansion::readSizes(StringRef &reason) {
  for (const Term &term : terms)
    for (auto [label, size] : llvm::zip_equal(term.labels, getRankedType(term.value).getShape())) {
      auto [it, isNew] = sizes.try_emplace(label, size);
      int64_t &known = it->second;
      if (size == 0 || (!isNew && (size == 1) != (known == 1)))
        return reason = "a dimension is empty or repeated", failure();
      if (ShapedType::isDynamic(known))
        known = size;
      else if (!ShapedType::isDynamic(size) && size != known)
        return reason = "dimensions of one label have different sizes", failure();
    }
  return success();
}

/// The product of two terms of which the labels `kept` stay.
std::optional<ProductPlan> EinsumExpansion::plan(const Term &a, const Term &b, const llvm::SetVector<Label> &kept,
                                                 bool isLast, StringRef &reason) {
  ProductPlan plan;
  auto place = [&](Label label) { return llvm::find(output, label) - output.begin(); };
  auto sortAsOutput = [&](Labels &labels) {
    if (isLast)
      llvm::sort(labels, [&](Label x, Label y) { return place(x) < place(y); });
  };
  auto collect = [&](const Term &term, const Term &other) {
    Labels alone;
    for (Label label : term.labels)
      if (!llvm::is_contained(other.labels, label))
        alone.push_back(label);
    return alone;
  };
  plan.rows = collect(a, b);
  plan.columns = collect(b, a);
  for (Label label : llvm::concat<Label>(plan.rows, plan.columns))
    if (!kept.contains(label))
      return reason = "it sums a dimension of one operand", std::nullopt;
  for (Label label : a.labels)
    if (kept.contains(label) && llvm::is_contained(b.labels, label))
      plan.batch.push_back(label);
  sortAsOutput(plan.rows);
  sortAsOutput(plan.columns);
  sortAsOutput(plan.batch);
  // A weight is the right operand; else the rows come before the columns in the result.
  bool isWeightLeft = isWeight(a.value), isWeightRight = isWeight(b.value), hasBatch = !plan.batch.empty();
  plan.isSwapped = !hasBatch && isWeightLeft != isWeightRight
                       ? isWeightLeft
                       : isLast && !plan.rows.empty() && !plan.columns.empty() &&
                             place(plan.columns.front()) < place(plan.rows.front());
  if (plan.isSwapped)
    std::swap(plan.rows, plan.columns);
  const Term &right = plan.isSwapped ? a : b;
  for (Label label : right.labels)
    if (llvm::is_contained((plan.isSwapped ? b : a).labels, label) && !kept.contains(label))
      plan.inner.push_back(label);
  if (plan.inner.empty())
    return reason = "it sums nothing", std::nullopt;
  if (isWeight(right.value)) // whose elements stay in their order
    llvm::sort(plan.columns,
               [&](Label x, Label y) { return llvm::find(right.labels, x) < llvm::find(right.labels, y); });
  bool canMerge = getTarget(eachAlone(concatenate(plan.groupLeft())), plan.groupLeft()) &&
                  getTarget(eachAlone(concatenate(plan.groupRight())), plan.groupRight()) &&
                  getTarget(plan.groupResult(), eachAlone(concatenate(plan.groupResult())));
  if (!canMerge)
    return reason = "it merges dimensions of unknown size", std::nullopt;
  return plan;
}

LogicalResult EinsumExpansion::planAll(StringRef &reason) {
  Term result = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    llvm::SetVector<Label> kept(output.begin(), output.end());
    for (size_t later = i + 1; later < terms.size(); ++later)
      kept.insert(terms[later].labels.begin(), terms[later].labels.end());
    auto plan = this->plan(result, terms[i], kept, i + 1 == terms.size(), reason);
    if (!plan)
      return failure();
    // What is multiplied so far is no weight, whatever value stands for it here.
    result = {op->getResult(0), concatenate(plan->groupResult())};
    plans.push_back(*plan);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

int64_t EinsumExpansion::sizeOf(const Labels &group) const {
  int64_t product = 1;
  for (Label label : group) {
    int64_t size = sizes.lookup(label);
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(product, size, product))
      return ShapedType::kDynamic;
  }
  return product;
}

/// What Reshape is given to make dimensions `to` of dimensions `from`: 0 copies one, and one may be inferred.
std::optional<SmallVector<int64_t>> EinsumExpansion::getTarget(ArrayRef<Labels> from, ArrayRef<Labels> to) const {
  SmallVector<int64_t> target;
  for (auto [dim, group] : llvm::enumerate(to)) {
    bool isCopied = dim < from.size() && from[dim] == group;
    int64_t size = sizeOf(group);
    target.push_back(!ShapedType::isDynamic(size) ? size : isCopied ? 0 : -1);
  }
  return llvm::count(target, -1) <= 1 ? std::optional(target) : std::nullopt;
}

Value EinsumExpansion::regroup(Value value, ArrayRef<Labels> from, ArrayRef<Labels> to) {
  if (from == to)
    return value;
  SmallVector<int64_t> shape;
  for (const Labels &group : to)
    shape.push_back(sizeOf(group));
  return onnx.reshape(value, *getTarget(from, to), shape);
}

/// The term with its dimensions in the order of `groups`, each group as one.
Value EinsumExpansion::arrange(const Term &term, ArrayRef<Labels> groups) {
  Labels wanted = concatenate(groups);
  Value value = term.value;
  if (wanted != term.labels)
    value = onnx.transpose(value, llvm::map_to_vector(wanted, [&](Label label) -> int64_t {
                             return llvm::find(term.labels, label) - term.labels.begin();
                           }));
  return regroup(value, eachAlone(wanted), groups);
}

/// The addition of a weight with the columns' dimensions, the only use of the result, which then is that of a row before
/// the columns are taken apart.
Operation *EinsumExpansion::findBias(const ProductPlan &plan, Value right) {
  Value result = op->getResult(0);
  bool staysInOrder = concatenate(plan.groupResult()) == output;
  if (!isWeight(right) || plan.columns.size() < 2 || !staysInOrder || !result.hasOneUse())
    return nullptr;
  Operation *add = *result.getUsers().begin();
  if (!isOp(add, "Add"))
    return nullptr;
  Value bias = add->getOperand(add->getOperand(0) == result ? 1 : 0);
  SmallVector<int64_t> wanted = llvm::map_to_vector(plan.columns, [&](Label label) { return sizes.lookup(label); });
  bool fits = isWeight(bias) && isFloat(bias) && getRankedType(bias).getShape() == ArrayRef(wanted) &&
              getRankedType(bias).hasStaticShape();
  return fits ? add : nullptr;
}

Value EinsumExpansion::multiply(const ProductPlan &plan, const Term &a, const Term &b) {
  Value left = arrange(plan.isSwapped ? b : a, plan.groupLeft());
  Value right = arrange(plan.isSwapped ? a : b, plan.groupRight());
  SmallVector<int64_t> shape;
  for (const Labels &group : plan.groupResult())
    shape.push_back(sizeOf(group));
  return onnx.create("MatMul", {left, right}, RankedTensorType::get(shape, getRankedType(left).getElementType()));
}

LogicalResult EinsumExpansion::run(StringRef &reason) {
  if (failed(read(reason)) || failed(planAll(reason)))
    return failure();
  const ProductPlan &final = plans.back();
  Operation *add = findBias(final, terms[terms.size() - (final.isSwapped ? 2 : 1)].value);
  b.setInsertionPoint(add ? add : op);
  Term result = terms.front();
  for (auto [plan, term] : llvm::zip_equal(plans, ArrayRef(terms).drop_front())) {
    Value product = multiply(plan, result, term);
    if (add && &plan == &final) {
      int64_t width = sizeOf(plan.columns);
      Value bias = add->getOperand(add->getOperand(0) == op->getResult(0) ? 1 : 0);
      product = onnx.add(product, onnx.reshape(bias, {width}, {width}));
    }
    Labels labels = concatenate(plan.groupResult());
    result = {regroup(product, plan.groupResult(), eachAlone(labels)), labels};
  }
  Operation *last = add ? add : op;
  replace(last->getResult(0), arrange(result, eachAlone(output)));
  last->erase();
  if (add)
    op->erase();
  return success();
}

namespace {
struct ExpandEinsum : impl::ExpandEinsumBase<ExpandEinsum> {
  void runOnOperation() override {
    SmallVector<Operation *> nodes;
    getOperation().walk([&](Operation *op) {
      if (isOp(op, "Einsum"))
        nodes.push_back(op);
    });
    for (Operation *op : nodes) {
      StringRef reason;
      Location loc = op->getLoc();
      if (succeeded(EinsumExpansion(op).run(reason)))
        ++numExpanded;
      else
        remarkMissed(loc, kPass, "Einsum") << reason;
    }
  }
};
} // namespace

} // namespace hone::raising
