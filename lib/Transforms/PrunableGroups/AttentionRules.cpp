// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention as a node: which operands and results have heads, and along which dimension.

#include "Rules.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include <numeric>

using namespace mlir;

namespace hone::prunable {

namespace {
/// A tensor of attention with something for each head: along `axis`, one part after the other, each with so many elements for every
/// head of keys.
struct HeadAxis {
  OpOperand *operand; // null: a result
  Value value;
  int64_t axis;
  SmallVector<int64_t, 3> parts;
};

/// The tensors of a node that have heads. Operands that are absent are left out.
class Heads {
public:
  Heads(Operation *op, int64_t kvHeads) : op(op), kvHeads(kvHeads) {}

  void addOperand(unsigned i, int64_t axis, ArrayRef<int64_t> parts) {
    if (has(i))
      axes.push_back({&op->getOpOperand(i), op->getOperand(i), axis, SmallVector<int64_t, 3>(parts)});
  }
  void addResult(unsigned i, int64_t axis, int64_t part) {
    if (i < op->getNumResults() && getType(op->getResult(i)))
      axes.push_back({nullptr, op->getResult(i), axis, {part}});
  }
  /// Operand `i`, [.., heads, rows, columns], where it is not repeated for all heads.
  void addMask(unsigned i, int64_t perKvHead) {
    RankedTensorType type = has(i) ? getType(op->getOperand(i)) : RankedTensorType();
    if (type && type.getRank() >= 3 && type.getDimSize(type.getRank() - 3) != 1)
      addOperand(i, type.getRank() - 3, perKvHead);
  }
  bool has(unsigned i) const { return i < op->getNumOperands() && !onnxir::isAbsent(op->getOperand(i)); }
  /// What is known of one tensor goes to all of them.
  void link(GroupAnalysis &analysis) const;

private:
  Groups findGroups(GroupAnalysis &analysis) const;

  Operation *op;
  int64_t kvHeads; // KV heads
  SmallVector<HeadAxis> axes;
};
} // namespace

/// The prunable groups of the KV heads, or nothing.
Groups Heads::findGroups(GroupAnalysis &analysis) const {
  for (const HeadAxis &of : axes) {
    const GroupAxis *groups = of.operand ? analysis.find(*of.operand) : analysis.find(of.value);
    if (!groups || groups->axis != of.axis)
      continue;
    int64_t begin = 0;
    for (int64_t part : of.parts) {
      if (begin + kvHeads * part > static_cast<int64_t>(groups->groupOf.size()))
        return {};
      if (Groups found = sampleWhole(ArrayRef(groups->groupOf).slice(begin, kvHeads * part), part); !found.empty())
        return found;
      begin += kvHeads * part;
    }
  }
  return {};
}

void Heads::link(GroupAnalysis &analysis) const {
  std::string name = onnxir::getOpType(op).str();
  for (OpOperand &use : op->getOpOperands())
    if (analysis.find(use) && llvm::none_of(axes, [&](const HeadAxis &of) { return of.operand == &use; }))
      return analysis.refuse(name + " has its groups in an operand that is not cut");
  Groups groupOf = findGroups(analysis);
  if (groupOf.empty())
    return analysis.refuseLater(name + " mixes its groups");
  for (const HeadAxis &of : axes) {
    Groups all;
    for (int64_t part : of.parts)
      all.append(repeat(groupOf, part));
    if (of.operand)
      analysis.mark(*of.operand, of.axis, all);
    else
      analysis.mark(of.value, of.axis, all);
  }
}

/// The elements of `value` along `axis` for each of `heads`; 0 where that is not known.
static int64_t getHeadSize(Value value, int64_t axis, int64_t heads) {
  RankedTensorType type = getType(value);
  int64_t width = type && axis < type.getRank() ? type.getDimSize(axis) : 0;
  return heads > 0 && width > 0 && width % heads == 0 ? width / heads : 0;
}

bool isAttentionNode(Operation *op) {
  return isNode(op, "GroupQueryAttention") || isNode(op, "MultiHeadAttention") ||
         (isNode(op, "Attention") && onnxir::getDomain(op).empty());
}

int64_t markHeads(Operation *op, GroupAnalysis &analysis) {
  RankedTensorType result = getType(op->getResult(0)), key = getType(op->getOperand(1));
  bool hasHeadAxis = isNode(op, "Attention") && result && result.getRank() == 4;
  int64_t count = getInteger(op, isNode(op, "MultiHeadAttention") ? "num_heads" : "kv_num_heads", 0),
          axis = hasHeadAxis ? 1 : 2;
  if (hasHeadAxis)
    count = key ? key.getDimSize(1) : 0;
  int64_t size = result ? getHeadSize(op->getResult(0), axis, count) : 0;
  if (size == 0) {
    analysis.refuse("the number of its heads is not known");
    return 0;
  }
  Groups groups(count);
  std::iota(groups.begin(), groups.end(), 0);
  analysis.mark(op->getResult(0), axis, repeat(groups, size));
  return count;
}

/// Operands 0 to 4 are queries (or all three), keys, values, past keys and past values; results what is attended, present keys and
/// present values.
void visitGroupQueryAttention(Operation *op, GroupAnalysis &analysis) {
  int64_t heads = getInteger(op, "num_heads", 0), shared = getInteger(op, "kv_num_heads", 0);
  Heads all(op, shared);
  int64_t size = getHeadSize(op->getOperand(0), 2, all.has(1) ? heads : heads + 2 * shared);
  if (shared < 1 || heads % shared != 0 || size == 0)
    return analysis.refuse("GroupQueryAttention has heads that are not known");
  int64_t perHead = heads / shared;
  if (all.has(1))
    all.addOperand(0, 2, perHead * size);
  else
    all.addOperand(0, 2, {perHead * size, size, size});
  all.addOperand(1, 2, size);
  all.addOperand(2, 2, size);
  all.addOperand(3, 1, 1);
  all.addOperand(4, 1, 1);
  all.addResult(0, 2, perHead * size);
  all.addResult(1, 1, 1);
  all.addResult(2, 1, 1);
  if (llvm::any_of(llvm::seq<unsigned>(10, std::max(10u, op->getNumOperands())),
                   [&](unsigned i) { return all.has(i); }))
    return analysis.refuse("GroupQueryAttention has its groups in an operand that is not cut");
  all.link(analysis);
}

/// Operands are queries [B, S, N D] (or all three, [B, S, N, 3, D]), keys [B, L, N D] (with values, [B, L, N, 2, D], or of another
/// sequence, [B, N, L, D]), values, bias of all three [3 N D], lengths of keys, bias of scores, past keys and past values; results
/// what is attended, present keys and present values.
void visitMultiHeadAttention(Operation *op, GroupAnalysis &analysis) {
  int64_t heads = getInteger(op, "num_heads", 0);
  Heads all(op, heads);
  RankedTensorType query = getType(op->getOperand(0)), result = getType(op->getResult(0));
  int64_t size = !query ? 0 : query.getRank() == 5 ? query.getDimSize(4) : getHeadSize(op->getOperand(0), 2, heads);
  int64_t sizeOfValues = result ? getHeadSize(op->getResult(0), 2, heads) : 0;
  if (size < 1 || sizeOfValues < 1 || op->getNumOperands() > 8)
    return analysis.refuse("MultiHeadAttention has heads that are not known");
  all.addOperand(0, 2, query.getRank() == 5 ? 1 : size);
  for (auto [i, perHead] : {std::pair(1, size), std::pair(2, sizeOfValues)}) {
    RankedTensorType type = all.has(i) ? getType(op->getOperand(i)) : RankedTensorType();
    if (type)
      all.addOperand(i, type.getRank() == 4 ? 1 : 2, type.getRank() == 3 ? perHead : 1);
  }
  all.addOperand(3, 0, {size, size, sizeOfValues});
  all.addMask(5, 1);
  all.addOperand(6, 1, 1);
  all.addOperand(7, 1, 1);
  all.addResult(0, 2, sizeOfValues);
  for (unsigned i : {1, 2, 3})
    all.addResult(i, 1, 1);
  all.link(analysis);
}

/// Operands are queries, keys and values, [B, N, S, D] or [B, S, N D], a mask, past keys and past values; results what is attended,
/// present keys and values, and scores.
void visitAttention(Operation *op, GroupAnalysis &analysis) {
  RankedTensorType query = getType(op->getOperand(0)), key = getType(op->getOperand(1));
  bool isFlat = query && query.getRank() == 3;
  int64_t heads = isFlat ? getInteger(op, "q_num_heads", 0) : query ? query.getDimSize(1) : 0;
  int64_t shared = isFlat ? getInteger(op, "kv_num_heads", 0) : key ? key.getDimSize(1) : 0;
  Heads all(op, shared);
  int64_t axis = isFlat ? 2 : 1, perHead = shared > 0 ? heads / shared : 0;
  int64_t size = getHeadSize(op->getOperand(0), axis, heads), sizeOfKeys = getHeadSize(op->getOperand(1), axis, shared),
          sizeOfValues = getHeadSize(op->getOperand(2), axis, shared);
  if (!onnxir::getDomain(op).empty() || shared < 1 || heads % shared != 0 || size * sizeOfKeys * sizeOfValues == 0)
    return analysis.refuse("Attention has heads that are not known");
  all.addOperand(0, axis, perHead * size);
  all.addOperand(1, axis, sizeOfKeys);
  all.addOperand(2, axis, sizeOfValues);
  all.addMask(3, perHead);
  all.addOperand(4, 1, 1);
  all.addOperand(5, 1, 1);
  all.addResult(0, axis, perHead * sizeOfValues);
  all.addResult(1, 1, 1);
  all.addResult(2, 1, 1);
  all.addResult(3, 1, perHead);
  all.link(analysis);
}

/// Heads of [B, N, S, D] are rotated each by itself, and so are those of [B, S, N D], of which an attribute says how many there are.
void visitRotaryEmbedding(Operation *op, GroupAnalysis &analysis) {
  RankedTensorType type = getType(op->getOperand(0));
  bool isFlat = type && type.getRank() == 3;
  int64_t heads = isFlat ? getInteger(op, "num_heads", 0) : type ? type.getDimSize(1) : 0, axis = isFlat ? 2 : 1;
  int64_t size = getHeadSize(op->getOperand(0), axis, heads);
  if (size == 0)
    return analysis.refuse("RotaryEmbedding has heads that are not known");
  Heads all(op, heads);
  all.addOperand(0, axis, size);
  all.addResult(0, axis, size);
  all.link(analysis);
}

} // namespace hone::prunable
