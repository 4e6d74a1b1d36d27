// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-absorb-latents: multi-head latent attention (MLA; DeepSeek-V2, arXiv 2405.04434) over its latents. A model expands the cached
// latents of all positions to the keys and values of each head, in every call. As that is linear, the part of its weight that makes keys
// multiplies queries instead, and the part that makes values multiplies what attention gives: all heads read one key, the latent and the rotated
// part, and one value, the latent.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/IR/Dominance.h"

namespace hone {
#define GEN_PASS_DEF_ABSORBLATENTS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-absorb-latents";

namespace {

/// Consecutive elements of the heads of a key or value: element d of head h is element `offset + h * stride + d - first` of the last
/// dimension of `source`, for `first <= d < first + size`.
struct HeadPart {
  Value source;
  int64_t first = 0, size = 0, offset = 0, stride = 0;
};

/// The parts of an attention over latents.
struct LatentAttention {
  AttentionOp attention;
  LinearOp expand;              // latents to keys and values of heads
  HeadPart key, rotated, value; // of the keys: from the latent, and the same for all heads; of the values
  KvAppendOp latents, rotations;
  int64_t heads = 0, rank = 0; // rank: elements of a latent
};

class LatentAbsorber {
public:
  explicit LatentAbsorber(func::FuncOp function)
      : function(function), module(function->getParentOfType<ModuleOp>()), symbols(module), analysis(function) {}
  LogicalResult run();
  unsigned absorbed = 0;

private:
  std::optional<SmallVector<HeadPart>> findParts(Value heads);
  const analysis::Expression *getElement(Value value, ArrayRef<Polynomial> at);
  KvAppendOp findSlot(Value rows);
  std::optional<LatentAttention> match(AttentionOp attention, DominanceInfo &dominance, std::string &reason);
  LogicalResult rewrite(LatentAttention &found);
  Value createWeight(OpBuilder &b, LatentAttention &found, ArrayRef<float> elements, const HeadPart &part,
                     StringRef name, bool isTransposed);
  Value appendKeys(LatentAttention &found);

  func::FuncOp function;
  ModuleOp module;
  SymbolTable symbols;
  SymbolicAnalysis analysis;
};

} // namespace

//===- Recognition ------------------------------------------------------------------------------------------------===//

/// The element at those indices, through concatenations where it is known which of their parts has it.
const analysis::Expression *LatentAbsorber::getElement(Value value, ArrayRef<Polynomial> at) {
  const auto *element = analysis.getElement(value, at);
  if (element->kind != analysis::ExpressionKind::Load || !isOp(element->source.getDefiningOp(), "Concat"))
    return element;
  Operation *concat = element->source.getDefiningOp();
  int64_t rank = element->indices.size(), axis = getInteger(concat, "axis", 0);
  axis += axis < 0 ? rank : 0;
  SmallVector<Polynomial> inPart(element->indices);
  for (Value part : concat->getOperands()) {
    auto place = inPart[axis].getConstant();
    int64_t size = getRank(part) == rank ? getRankedType(part).getDimSize(axis) : ShapedType::kDynamic;
    if (!place || ShapedType::isDynamic(size))
      return element;
    if (*place < size)
      return getElement(part, inPart);
    inPart[axis] = inPart[axis] - Polynomial(size);
  }
  return element;
}

/// What the elements of `heads`, [B, H, S, size], are read from: [B, S, N] or [B, 1, S, N].
std::optional<SmallVector<HeadPart>> LatentAbsorber::findParts(Value heads) {
  auto shape = analysis.getShape(heads);
  auto type = getRankedType(heads);
  if (!shape || shape->size() != 4 || type.isDynamicDim(1) || type.isDynamicDim(3))
    return std::nullopt;
  SmallVector<Polynomial> at = analysis.getIndices(*shape);
  SmallVector<HeadPart> parts;
  for (int64_t d = 0; d < type.getDimSize(3); ++d) {
    SmallVector<int64_t, 2> places;
    Value source;
    for (int64_t head : {int64_t(0), std::min<int64_t>(1, type.getDimSize(1) - 1)}) {
      const auto *element = getElement(heads, {at[0], Polynomial(head), at[2], Polynomial(d)});
      if (element->kind != analysis::ExpressionKind::Load || (source && element->source != source))
        return std::nullopt;
      source = element->source;
      auto place = element->indices.back().getConstant();
      int64_t rank = element->indices.size();
      bool isRow = place && (rank == 3 || (rank == 4 && element->indices[1].getConstant() == 0)) &&
                   element->indices[0] == at[0] && element->indices[rank - 2] == at[2];
      if (!isRow)
        return std::nullopt;
      places.push_back(*place);
    }
    int64_t stride = places[1] - places[0];
    bool goesOn = !parts.empty() && parts.back().source == source && parts.back().stride == stride &&
                  parts.back().offset + parts.back().size == places[0];
    if (goesOn)
      ++parts.back().size;
    else
      parts.push_back({source, d, 1, places[0], stride});
  }
  // Heads in between lie as the first two do.
  for (const HeadPart &part : parts)
    for (int64_t head = 2; head < type.getDimSize(1); ++head) {
      const auto *element = getElement(heads, {at[0], Polynomial(head), at[2], Polynomial(part.first)});
      if (element->kind != analysis::ExpressionKind::Load || element->source != part.source ||
          element->indices.back().getConstant() != part.offset + head * part.stride)
        return std::nullopt;
    }
  return parts;
}

/// What gives a slot of one head whose rows are those of `rows`, [B, S, size] or [B, 1, S, size], or null.
KvAppendOp LatentAbsorber::findSlot(Value rows) {
  auto shape = analysis.getShape(rows);
  size_t rank = shape ? shape->size() : 0;
  if (rank != 3 && rank != 4)
    return {};
  SmallVector<Polynomial> at = analysis.getIndices(*shape);
  const auto *element = analysis.getElement(rows, at);
  bool isRow = element->kind == analysis::ExpressionKind::Load && element->indices.size() == 4 &&
               element->indices[0] == at[0] && element->indices[1].getConstant() == 0 &&
               element->indices[2] == at[rank - 2] && element->indices[3] == at[rank - 1];
  return isRow ? skipCasts(element->source).getDefiningOp<KvAppendOp>() : KvAppendOp();
}

std::optional<LatentAttention> LatentAbsorber::match(AttentionOp attention, DominanceInfo &dominance,
                                                     std::string &reason) {
  auto keys = findParts(attention.getKey()), values = findParts(attention.getValue());
  if (!keys || !values || keys->size() > 2 || values->size() != 1)
    return std::nullopt;
  LatentAttention found;
  found.attention = attention;
  found.value = values->front();
  found.expand = found.value.source.getDefiningOp<LinearOp>();
  if (!found.expand || keys->size() != 2)
    return std::nullopt;
  for (const HeadPart &part : *keys)
    (part.source == found.value.source ? found.key : found.rotated) = part;
  found.heads = getRankedType(attention.getKey()).getDimSize(1);
  found.rank = getLastSize(found.expand.getX());
  found.latents = findSlot(found.expand.getX());
  found.rotations = found.rotated.source ? findSlot(found.rotated.source) : KvAppendOp();
  bool isLatent = found.latents && found.rotations && found.key.source && found.rotated.stride == 0 &&
                  found.rotated.offset == 0 && found.rotated.size == getLastSize(found.rotated.source) &&
                  (found.heads == 1 || (found.key.stride > 0 && found.value.stride > 0)) &&
                  !ShapedType::isDynamic(found.rank);
  if (!isLatent)
    return std::nullopt;
  auto isSlot = [](KvAppendOp append) {
    auto type = getRankedType(append.getAll());
    return type.getRank() == 4 && type.getDimSize(1) == 1;
  };
  if (found.expand.getBias() || !found.expand.getWeight().getDefiningOp<GetParamOp>())
    reason = "what expands its latents has a bias, or a weight that is computed";
  else if (!isSlot(found.latents) || !isSlot(found.rotations) ||
           !dominance.properlyDominates(found.latents, found.rotations) ||
           getRankedType(found.latents.getFresh()).getElementType() !=
               getRankedType(found.rotations.getFresh()).getElementType())
    reason = "its latents and rotated keys are not in slots of one head";
  return found;
}

//===- Rewriting --------------------------------------------------------------------------------------------------===//

/// Rows `part` of the weight [N, rank] for each head: f32 [heads, size, rank], or [heads, rank, size] if `isTransposed`.
Value LatentAbsorber::createWeight(OpBuilder &b, LatentAttention &found, ArrayRef<float> elements, const HeadPart &part,
                                   StringRef name, bool isTransposed) {
  int64_t rank = found.rank;
  std::vector<float> weight(static_cast<size_t>(found.heads * part.size * rank));
  for (int64_t head = 0, at = 0; head < found.heads; ++head)
    for (int64_t i = 0; i < part.size * rank; ++i, ++at) {
      int64_t row = isTransposed ? i % part.size : i / rank, column = isTransposed ? i / part.size : i % rank;
      weight[at] = elements[(part.offset + head * part.stride + row) * rank + column];
    }
  SmallVector<int64_t> shape{found.heads, isTransposed ? rank : part.size, isTransposed ? part.size : rank};
  auto type = RankedTensorType::get(shape, b.getF32Type());
  auto read = found.expand.getWeight().getDefiningOp<GetParamOp>();
  OpBuilder before = OpBuilder::atBlockBegin(module.getBody());
  Attribute storage =
      makeResource(type, {reinterpret_cast<const char *>(weight.data()), weight.size() * sizeof(float)});
  auto param = ParamOp::create(before, read.getLoc(), (read.getName() + "." + name).str(), type, storage);
  symbols.insert(param);
  return GetParamOp::create(b, read.getLoc(), type, param.getSymName());
}

/// Lets the slot of rotated keys have the latents before them; returns all of it. Others read their part of it.
Value LatentAbsorber::appendKeys(LatentAttention &found) {
  KvAppendOp append = found.rotations;
  auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(append, append.getState().getType().getState());
  auto widen = [&](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    shape[3] += found.rank;
    return RankedTensorType::get(shape, type.getElementType());
  };
  SmallVector<Attribute> slots(state.getSlots().getValue());
  auto slot = cast<SlotAttr>(slots[append.getSlot()]);
  slots[append.getSlot()] = SlotAttr::get(slot.getContext(), slot.getName(), widen(slot.getType()), slot.getAxis());
  state.setSlotsAttr(ArrayAttr::get(state.getContext(), slots));
  OpBuilder b(append);
  Value latents = found.latents.getFresh();
  Value fresh = OnnxBuilder(b, append.getLoc())
                    .create("Concat", {latents, append.getFresh()}, widen(getRankedType(append.getFresh())),
                            b.getNamedAttr("axis", b.getI64IntegerAttr(3)));
  append.getFreshMutable().set(fresh);
  RankedTensorType before = getRankedType(append.getAll());
  append.getAll().setType(widen(before));
  b.setInsertionPointAfter(append);
  Value rotated =
      OnnxBuilder(b, append.getLoc()).slice(append.getAll(), 3, found.rank, found.rank + before.getDimSize(3));
  rotated.setType(before);
  append.getAll().replaceAllUsesExcept(rotated, rotated.getDefiningOp());
  return append.getAll();
}

/// The part of the queries that a part of the keys is multiplied by.
static Value sliceQueries(OnnxBuilder &onnx, Value query, const HeadPart &part) {
  return onnx.slice(query, 3, part.first, part.first + part.size);
}

LogicalResult LatentAbsorber::rewrite(LatentAttention &found) {
  auto read = found.expand.getWeight().getDefiningOp<GetParamOp>();
  FailureOr<std::vector<float>> elements = readStoredElements(symbols.lookup<ParamOp>(read.getName()));
  if (failed(elements))
    return failure();
  AttentionOp attention = found.attention;
  Value keys = appendKeys(found);
  OpBuilder b(attention);
  OnnxBuilder onnx(b, attention.getLoc());
  auto withLast = [](Value value, int64_t size) {
    auto type = getRankedType(value);
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = size;
    return RankedTensorType::get(shape, type.getElementType());
  };
  Value query = attention.getQuery(), result = attention.getResult();
  Value toLatent = createWeight(b, found, *elements, found.key, "keys", /*isTransposed=*/false);
  Value absorbed = onnx.create("MatMul", {sliceQueries(onnx, query, found.key), toLatent}, withLast(query, found.rank));
  Value queries = onnx.create("Concat", {absorbed, sliceQueries(onnx, query, found.rotated)},
                              withLast(query, found.rank + found.rotated.size), onnx.integerAttr("axis", 3));
  auto overLatents = cast<AttentionOp>(b.clone(*attention));
  overLatents.getQueryMutable().set(queries);
  overLatents.getKeyMutable().set(keys);
  overLatents.getValueMutable().set(found.latents.getAll());
  overLatents.getResult().setType(withLast(result, found.rank));
  Value toValues = createWeight(b, found, *elements, found.value, "values", /*isTransposed=*/true);
  Value values = onnx.create("MatMul", {overLatents.getResult(), toValues}, result.getType());
  SmallVector<Value> results(overLatents->getResults());
  results.front() = values;
  attention->replaceAllUsesWith(results);
  attention.erase();
  return success();
}

LogicalResult LatentAbsorber::run() {
  SmallVector<AttentionOp> attentions(function.getOps<AttentionOp>());
  for (AttentionOp attention : attentions) {
    std::string reason;
    DominanceInfo dominance(function);
    std::optional<LatentAttention> found = match(attention, dominance, reason);
    if (!found)
      continue;
    if (!reason.empty()) {
      remarkMissed(attention.getLoc(), kPass, "LatentAttention") << reason;
      continue;
    }
    remarkRaised(attention.getLoc(), kPass, "LatentAttention")
        << std::to_string(found->heads) << " heads over latents of " << std::to_string(found->rank);
    if (failed(rewrite(*found)))
      return failure();
    analysis.invalidate();
    ++absorbed;
  }
  if (absorbed)
    eraseDead(function);
  return success();
}

namespace {
struct AbsorbLatents : impl::AbsorbLatentsBase<AbsorbLatents> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool hasState = llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<KvType>);
      if (!hasState || function.isExternal())
        continue;
      LatentAbsorber absorber(function);
      if (failed(absorber.run()))
        return signalPassFailure();
      numAbsorbed += absorber.absorbed;
    }
  }
};
} // namespace

} // namespace hone::raising
