// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix has the bytes of all its parts in order, so that only types change, or says which parts it has.

#include "ExpertWeights.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace hone::raising {

/// `storage` of a plain tensor as that of one of `type`, with as many elements; null where it has none of the known forms.
static Attribute reshapeStorage(Attribute storage, RankedTensorType type) {
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(storage))
    return elements.reshape(type);
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(storage))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return dyn_cast_or_null<ExternalAttr>(storage);
}

Value ExpertWeights::read(OnnxBuilder &onnx, const Twine &name, RankedTensorType type, Attribute storage) {
  ParamOp &param = params[{type, storage}];
  if (!param) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    param = ParamOp::create(b, onnx.loc, (name + ".experts").str(), type, storage);
    symbols.insert(param);
    auto original = symbols.lookup<ParamOp>(name.str());
    if (original && !joined.contains(original))
      copies.try_emplace(original, param);
  }
  return GetParamOp::create(onnx.b, onnx.loc, param.getTensorType(), param.getSymName());
}

Value ExpertWeights::stack(OnnxBuilder &onnx, Value weights) {
  if (!weights)
    return {};
  RankedTensorType type = getRankedType(weights);
  int64_t rows = type.getDimSize(0) * type.getDimSize(1), columns = type.getDimSize(2);
  auto stacked = RankedTensorType::get({rows, columns}, type.getElementType());
  if (auto get = weights.getDefiningOp<GetParamOp>()) {
    auto param = symbols.lookup<ParamOp>(get.getName());
    if (Attribute storage = param && !type.getEncoding() ? reshapeStorage(param.getStorage(), stacked) : Attribute())
      return read(onnx, param.getSymName(), stacked, storage);
  }
  if (Operation *constant = getDefiningOp(weights, "Constant"))
    if (Attribute storage = reshapeStorage(constant->getAttr("value"), stacked))
      return read(onnx, "constant", stacked, storage);
  return onnx.reshape(weights, {rows, columns}, {rows, columns});
}

int64_t ExpertMatrices::getExpertCount() const {
  return all ? getRankedType(all).getDimSize(0) : static_cast<int64_t>(parts.size());
}

int64_t ExpertMatrices::getOutputs() const {
  return all ? getRankedType(all).getDimSize(isTransposed ? 2 : 1) : getRankedType(parts.front()).getDimSize(0);
}

int64_t ExpertMatrices::getInputs() const {
  return all ? getRankedType(all).getDimSize(isTransposed ? 1 : 2) : getRankedType(parts.front()).getDimSize(1);
}

/// Elements of `bytes` each, `[rows, columns]`, as `[columns, rows]`.
static void appendTransposed(SmallVectorImpl<char> &to, ArrayRef<char> from, int64_t rows, int64_t columns,
                             int64_t bytes) {
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row)
      llvm::append_range(to, from.slice((row * columns + column) * bytes, bytes));
}

/// A plane of `stacked` of what the file has as `[K, N]`, which is copied: no encoding is of blocks that are transposed each.
static Attribute stackTransposed(const EncodingPlane &plane, ArrayRef<Attribute> parts, RankedTensorType stacked,
                                 Location loc) {
  SmallVector<char, 0> bytes;
  for (Attribute part : parts) {
    FailureOr<StoredBytes> stored = StoredBytes::open(part, loc);
    if (failed(stored) || static_cast<int64_t>(stored->get().size()) != getDenseBytes(plane.type))
      return {};
    appendTransposed(bytes, stored->get(), plane.type.getDimSize(0), plane.type.getDimSize(1),
                     getElementBytes(plane.type.getElementType()));
    stored->release(0, stored->get().size());
  }
  return makeResource(stacked, bytes);
}

/// `[N, K]` of codes, `count` times one below the other.
static RankedTensorType getStackedCodes(RankedTensorType type, AffineAttr encoding, int64_t count) {
  auto rows = AffineAttr::get(type.getContext(), encoding.getBits(), encoding.getGroup(), encoding.getScales(),
                              encoding.getHasZeros(), encoding.getIsSigned(), /*transposed=*/false,
                              encoding.getActivations(), encoding.getAtLeast());
  return RankedTensorType::get({type.getDimSize(0) * count, type.getDimSize(1)}, type.getElementType(), rows);
}

/// The planes of `parts` as those of `stacked`, or null.
static Attribute joinPlanes(OnnxBuilder &onnx, ArrayRef<ParamOp> parts, RankedTensorType stacked) {
  ParamOp first = parts.front();
  RankedTensorType type = first.getTensorType();
  bool isTransposed = cast<AffineAttr>(type.getEncoding()).getTransposed();
  SmallVector<NamedAttribute> storage;
  for (auto [plane, whole] : llvm::zip_equal(getPlanes(type), getPlanes(stacked))) {
    SmallVector<Attribute> planes;
    for (ParamOp part : parts) {
      auto dictionary = dyn_cast<DictionaryAttr>(part.getStorage());
      Attribute of = dictionary ? dictionary.get(plane.name) : Attribute();
      if (!isa_and_nonnull<ElementsAttr, ExternalAttr>(of))
        return {};
      planes.push_back(of);
    }
    Attribute made = isTransposed ? stackTransposed(plane, planes, whole.type, onnx.loc)
                                  : StackedAttr::get(type.getContext(), plane.type, onnx.b.getArrayAttr(planes));
    if (!made)
      return {};
    storage.push_back(onnx.b.getNamedAttr(plane.name, made));
  }
  return onnx.b.getDictionaryAttr(storage);
}

Value ExpertWeights::joinCodes(OnnxBuilder &onnx, ArrayRef<ParamOp> parts) {
  ParamOp first = parts.front();
  RankedTensorType type = first.getTensorType();
  auto encoding = cast<AffineAttr>(type.getEncoding());
  RankedTensorType stacked = getStackedCodes(type, encoding, static_cast<int64_t>(parts.size()));
  SmallVector<Attribute> names;
  for (ParamOp part : parts)
    names.push_back(part.getSymNameAttr());
  Attribute &storage = codes[onnx.b.getArrayAttr(names)];
  if (!storage)
    storage = joinPlanes(onnx, parts, stacked);
  if (!storage)
    return {};
  joined.insert_range(parts);
  return read(onnx, first.getSymName(), stacked, storage);
}

/// Parameters of their own as one.
Value ExpertWeights::join(OnnxBuilder &onnx, ArrayRef<Value> parts) {
  RankedTensorType type = getRankedType(parts.front());
  SmallVector<ParamOp> sources;
  for (Value part : parts) {
    auto get = part.getDefiningOp<GetParamOp>();
    auto param = get ? symbols.lookup<ParamOp>(get.getName()) : ParamOp();
    if (!param || param.getTensorType() != type)
      return {};
    sources.push_back(param);
  }
  if (isa_and_nonnull<AffineAttr>(type.getEncoding()))
    return joinCodes(onnx, sources);
  if (type.getEncoding() && !isa<StoredAttr>(type.getEncoding()))
    return {};
  SmallVector<Attribute> storage, names;
  for (ParamOp param : sources) {
    if (!isa<ElementsAttr, ExternalAttr>(param.getStorage()))
      return {};
    storage.push_back(param.getStorage());
    names.push_back(param.getSymNameAttr());
  }
  joined.insert_range(sources);
  return readJoined(onnx, sources.front().getSymName(), type, storage, names);
}

/// The parameter of all `parts`, each of which is stored as `type`, with what `names` says of where the file has them.
Value ExpertWeights::readJoined(OnnxBuilder &onnx, StringRef name, RankedTensorType type, ArrayRef<Attribute> parts,
                                ArrayRef<Attribute> names) {
  auto stacked = StackedAttr::get(type.getContext(), type, onnx.b.getArrayAttr(parts));
  Value all = read(onnx, name, stacked.getStackedType(), stacked);
  if (!names.empty())
    symbols.lookup(all.getDefiningOp<GetParamOp>().getName())->setAttr(kJoinedAttrName, onnx.b.getArrayAttr(names));
  return all;
}

/// `[E, K, N]` as `[E · N, K]`.
Value ExpertWeights::joinTransposed(OnnxBuilder &onnx, Value all) {
  RankedTensorType type = getRankedType(all);
  auto get = all.getDefiningOp<GetParamOp>();
  auto param = get ? symbols.lookup<ParamOp>(get.getName()) : ParamOp();
  Operation *constant = getDefiningOp(all, "Constant");
  Attribute whole = param ? param.getStorage() : constant ? constant->getAttr("value") : Attribute();
  auto matrix = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  if (!whole || type.getEncoding() || !getDenseBytes(matrix))
    return {};
  SmallVector<Attribute> storage;
  for (int64_t expert = 0; expert < type.getDimSize(0); ++expert)
    storage.push_back(cut.take(whole, matrix, expert));
  if (llvm::is_contained(storage, Attribute()))
    return {};
  SmallVector<Attribute> names;
  if (param)
    names.push_back(param.getSymNameAttr());
  return readJoined(onnx, param ? param.getSymName() : "constant", getTransposedType(matrix), storage, names);
}

Value ExpertWeights::stack(OnnxBuilder &onnx, const ExpertMatrices &matrices) {
  if (!matrices)
    return {};
  if (!matrices.all)
    return join(onnx, matrices.parts);
  return matrices.isTransposed ? joinTransposed(onnx, matrices.all) : stack(onnx, matrices.all);
}

void ExpertWeights::finish() {
  passNamesOn(module, symbols, copies);
  for (ParamOp param : joined)
    if (mlir::SymbolTable::symbolKnownUseEmpty(param, module))
      symbols.erase(param);
}

Value ExpertWeights::stack(OnnxBuilder &onnx, Value codes, Value scales, Value zeros, int64_t bits, int64_t group,
                           Type elements) {
  RankedTensorType type = getRankedType(codes);
  int64_t columns = type.getDimSize(2) * 8 / bits;
  auto weight =
      quantized.makeRows(codes, scales, zeros, bits, group, type.getDimSize(0) * type.getDimSize(1), columns, elements);
  return weight ? read(onnx, weight->name, weight->type, weight->storage) : Value();
}

} // namespace hone::raising
