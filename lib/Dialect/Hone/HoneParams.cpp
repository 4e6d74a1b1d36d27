//===- HoneParams.cpp - parameters and their bytes --------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// param, get_param, planes, unpack.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Dialect/Hone/Shards.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace hone;

//===- param ------------------------------------------------------------------------------------------------------===//

SymbolTable::Visibility ParamOp::getVisibility() { return SymbolTable::Visibility::Private; }

RankedTensorType ParamOp::getStorageType() {
  auto converted = dyn_cast<ConvertedAttr>(getStorage());
  return converted ? converted.getType() : getTensorType();
}

/// What each of `planes` is in `stored`.
static SmallVector<Attribute> listStorage(ArrayRef<EncodingPlane> planes, Attribute stored) {
  auto dictionary = dyn_cast<DictionaryAttr>(stored);
  if (!dictionary)
    return {stored};
  return llvm::map_to_vector(planes, [&](const EncodingPlane &plane) { return dictionary.get(plane.name); });
}

SmallVector<Attribute> ParamOp::getPlaneStorage() {
  auto converted = dyn_cast<ConvertedAttr>(getStorage());
  return listStorage(getPlanes(getStorageType()), converted ? converted.getStorage() : getStorage());
}

static LogicalResult verifyPlaneStorage(ParamOp op, const EncodingPlane &plane, Attribute storage) {
  if (auto elements = dyn_cast_or_null<ElementsAttr>(storage)) {
    if (elements.getShapedType() != plane.type) // param C3
      return op.emitOpError() << "expected the elements of plane '" << plane.name << "' to be of type " << plane.type
                              << ", but got " << elements.getShapedType();
    return success();
  }
  if (auto stacked = dyn_cast_or_null<StackedAttr>(storage)) {
    if (stacked.getStackedType() != plane.type) // param C3
      return op.emitOpError() << "expected the parts of plane '" << plane.name << "' to be joined to " << plane.type
                              << ", but got " << stacked.getStackedType();
    return success();
  }
  auto external = dyn_cast_or_null<ExternalAttr>(storage);
  if (!external) // param C2
    return op.emitOpError() << "expected the storage of plane '" << plane.name
                            << "' to be dense elements, a resource, #hone.external or #hone.stacked";
  std::optional<int64_t> bytes = getDenseBytes(plane.type);
  if (!bytes)
    return op.emitOpError() << "unsupported type " << plane.type << " of plane '" << plane.name
                            << "'; supported: sizes of less than 2^63 bytes";
  if (*bytes != external.getBytes()) // param C4
    return op.emitOpError() << "expected the size of plane '" << plane.name << "' to be " << *bytes
                            << " bytes, but got " << external.getBytes();
  return success();
}

/// Whether the entries of `storage` are the planes, by name.
static bool namesPlanes(DictionaryAttr storage, ArrayRef<EncodingPlane> planes) {
  return storage.size() == planes.size() &&
         llvm::all_of(planes, [&](const EncodingPlane &plane) { return storage.contains(plane.name); });
}

/// Whether `stored` is the bytes of a tensor of the type that `op` stores.
static LogicalResult verifyStored(ParamOp op, Attribute stored) {
  SmallVector<EncodingPlane> planes = getPlanes(op.getStorageType());
  auto dictionary = dyn_cast<DictionaryAttr>(stored);
  if (dictionary ? !namesPlanes(dictionary, planes) : planes.size() != 1) { // param C2
    InFlightDiagnostic error = op.emitOpError() << "expected the storage to have the planes ";
    llvm::interleaveComma(planes, error, [&](const EncodingPlane &plane) { error << "'" << plane.name << "'"; });
    return error << ", but got " << stored;
  }
  for (auto [plane, storage] : llvm::zip_equal(planes, listStorage(planes, stored)))
    if (failed(verifyPlaneStorage(op, plane, storage)))
      return failure();
  return success();
}

LogicalResult ParamOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape()) // param C1
    return emitOpError() << "expected the type to have a static shape, but got " << type;
  Attribute stored = getStorage();
  if (auto converted = dyn_cast<ConvertedAttr>(stored)) {
    if (getPlainType(converted.getType()) != getPlainType(type)) // param C5
      return emitOpError() << "expected what is converted to be " << getPlainType(type) << " in some encoding, but got "
                           << converted.getType();
    if (!type.getEncoding()) // param C6
      return emitOpError() << "expected the type of what is converted to have an encoding, but got " << type;
    stored = converted.getStorage();
  }
  if (failed(verifyStored(*this, stored)))
    return failure();
  auto shards = (*this)->getAttrOfType<ArrayAttr>(kShardsAttrName);
  return success(!shards ||
                 llvm::all_of(shards, [&](Attribute shard) { return succeeded(verifyStored(*this, shard)); }));
}

//===- Passes over parameters -------------------------------------------------------------------------------------===//

llvm::MapVector<Operation *, SmallVector<GetParamOp>> hone::findReads(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::MapVector<Operation *, SmallVector<GetParamOp>> reads;
  module.walk([&](GetParamOp get) { reads[symbols.lookup(get.getName())].push_back(get); });
  return reads;
}

/// What operations do with the parameter that `reads` read.
static SmallVector<OpOperand *> listUses(ArrayRef<GetParamOp> reads) {
  SmallVector<OpOperand *> uses;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses())
      uses.push_back(&use);
  return uses;
}

bool hone::isTable(ArrayRef<GetParamOp> reads) {
  return llvm::any_of(listUses(reads), [](OpOperand *use) { return isLookedUp(*use); });
}

std::string hone::getProductBlocker(ArrayRef<GetParamOp> reads) {
  bool isMultiplied = false;
  for (OpOperand *use : listUses(reads)) {
    std::optional<WeightUse> weight = findWeight(*use);
    if (!weight)
      return "something other than products and embeddings reads it";
    isMultiplied |= weight->inputs != WeightInputs::Numbers;
  }
  return isMultiplied ? "" : "no product reads it";
}

std::string hone::getEncodingBlocker(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32())
    return "it is no matrix of f32";
  if (type.getEncoding() && !isa<StoredAttr>(type.getEncoding()))
    return "it has another encoding already";
  for (OpOperand *use : listUses(reads))
    if (!findWeight(*use))
      return "something other than products and embeddings reads it";
  return "";
}

int64_t hone::countExperts(ArrayRef<GetParamOp> reads) {
  for (OpOperand *use : listUses(reads))
    if (std::optional<WeightUse> weight = findWeight(*use); weight && weight->experts > 0)
      return weight->experts;
  return 0;
}

SmallVector<ParamOp> hone::findPartners(ArrayRef<GetParamOp> reads, const SymbolTable &symbols) {
  SmallVector<ParamOp> partners;
  for (OpOperand *use : listUses(reads)) {
    std::optional<WeightUse> weight = findWeight(*use);
    auto other = weight && weight->partner ? weight->partner->get().getDefiningOp<GetParamOp>() : GetParamOp();
    if (other && other.getName() != use->get().getDefiningOp<GetParamOp>().getName())
      partners.push_back(symbols.lookup<ParamOp>(other.getName()));
  }
  return partners;
}

void hone::changeEncoding(ParamOp param, ArrayRef<GetParamOp> reads, Attribute encoding) {
  RankedTensorType type = param.getTensorType();
  auto changed = RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
  if (!isa<ConvertedAttr>(param.getStorage()))
    param.setStorageAttr(ConvertedAttr::get(param.getContext(), type, param.getStorage()));
  param.setType(changed);
  for (GetParamOp read : reads)
    read.getResult().setType(changed);
}

ArrayRef<float> hone::getChannelScales(ParamOp param) {
  auto scales = param->getAttrOfType<DenseF32ArrayAttr>(kChannelScalesName);
  return scales ? scales.asArrayRef() : ArrayRef<float>();
}

void hone::addChannelScales(ParamOp param, ArrayRef<float> scales) {
  SmallVector<float> all(scales);
  for (auto [scale, before] : llvm::zip(all, getChannelScales(param)))
    scale *= before;
  param->setAttr(kChannelScalesName, DenseF32ArrayAttr::get(param.getContext(), all));
}

static ParameterOutcome changeOne(ParamOp param, ArrayRef<GetParamOp> reads, const ParameterChange &change) {
  if (std::string blocker = change.getBlocker(param, reads); !blocker.empty())
    return {ParameterOutcome::Left, blocker};
  FailureOr<std::string> what = change.change(param, reads);
  return succeeded(what) ? ParameterOutcome{ParameterOutcome::Changed, *what} : ParameterOutcome();
}

FailureOr<int64_t> hone::changeParameters(ModuleOp module, const ParameterChange &change) {
  auto options = remark::RemarkOpts::name(change.name).category(change.pass);
  int64_t changed = 0;
  auto all = findReads(module);
  for (auto [number, entry] : llvm::enumerate(all)) {
    auto param = cast<ParamOp>(entry.first);
    ParameterOutcome outcome;
    module.getContext()->executeAction<ChangeParameterAction>(
        [&, &reads = entry.second] { outcome = changeOne(param, reads, change); }, {param.getOperation()}, param,
        change, number, all.size(), outcome);
    if (outcome.kind == ParameterOutcome::Failed)
      return failure();
    if (outcome.kind == ParameterOutcome::Left) {
      remark::missed(param.getLoc(), options)
          << (param.getSymName() + " " + change.refused + ": " + outcome.text).str();
      continue;
    }
    ++changed;
    remark::passed(param.getLoc(), options) << (param.getSymName() + " " + outcome.text).str();
  }
  return changed;
}

std::optional<KeptInputs> hone::getKeptInputs(ParamOp param) {
  auto inputs = param->getAttrOfType<DictionaryAttr>(kInputsAttrName);
  if (!inputs)
    return std::nullopt;
  return KeptInputs{inputs.getAs<DenseI64ArrayAttr>("kept").asArrayRef(), inputs.getAs<IntegerAttr>("of").getInt()};
}

void hone::keepInputs(ParamOp param, ArrayRef<int64_t> kept, int64_t experts) {
  std::optional<KeptInputs> before = getKeptInputs(param);
  int64_t size = param.getTensorType().getDimSize(1), each = static_cast<int64_t>(kept.size()) / experts;
  bool areSeparate = before && static_cast<int64_t>(before->kept.size()) > size;
  SmallVector<int64_t> columns;
  for (auto [i, column] : llvm::enumerate(kept))
    columns.push_back(before ? before->kept[(areSeparate ? static_cast<int64_t>(i) / each * size : 0) + column]
                             : column);
  Builder b(param.getContext());
  int64_t all = before ? before->all : size;
  param->setAttr(kInputsAttrName, b.getDictionaryAttr({b.getNamedAttr("kept", b.getDenseI64ArrayAttr(columns)),
                                                       b.getNamedAttr("of", b.getI64IntegerAttr(all))}));
}

FloatType hone::getHalfType(MLIRContext *context, StringRef name, StringRef purpose) {
  if (name == "f16")
    return Float16Type::get(context);
  if (name == "bf16")
    return BFloat16Type::get(context);
  emitError(UnknownLoc::get(context)) << "unsupported type '" << name << "' to " << purpose << "; supported: bf16, f16";
  return {};
}

//===- get_param --------------------------------------------------------------------------------------------------===//

LogicalResult GetParamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getNameAttr());
  if (!param) // get_param C1
    return emitOpError() << "expected " << getNameAttr() << " to be a hone.param of this module";
  if (getType() != param.getType()) { // get_param C2
    InFlightDiagnostic error = emitOpError() << "expected the type of " << getNameAttr() << " to be " << param.getType()
                                             << ", but got " << getType();
    error.attachNote(param.getLoc()) << "the parameter is here";
    return error;
  }
  return success();
}

//===- planes, unpack ---------------------------------------------------------------------------------------------===//

LogicalResult PlanesOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getTensor().getType());
  if (!isa_and_nonnull<EncodingInterface>(type.getEncoding())) // planes C1
    return emitOptionalError(location, "'hone.planes' op expected a tensor with a weight encoding, but got ", type);
  for (const PlaneView &view : hone::getViews(type))
    types.push_back(view.type);
  return success();
}

void UnpackOp::build(OpBuilder &builder, OperationState &state, Value tensor) {
  build(builder, state, getPlainType(cast<RankedTensorType>(tensor.getType())), tensor);
}

LogicalResult UnpackOp::verify() {
  RankedTensorType type = getTensor().getType();
  if (!isa_and_nonnull<EncodingInterface>(type.getEncoding())) // unpack C1
    return emitOpError() << "expected a tensor with a weight encoding, but got " << type;
  if (getType() != getPlainType(type)) // unpack C2
    return emitOpError() << "expected the result to be " << getPlainType(type) << ", but got " << getType();
  return success();
}

LogicalResult UnpackOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getTensor()));
  return success();
}
