// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the manifest says of a module: its entries, their state, the kernels that it calls and the weights that it looks up.

#include "hone/Artefact/Artefact.h"

#include "hone/Analysis/SymbolicAnalysis.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/Lookups.h"
#include "hone/Dialect/Hone/Retention.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hone {

std::optional<hone_dtype> getDtype(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return HONE_BOOL;
    case 2:
      return isUnsigned ? HONE_U2 : HONE_I2;
    case 4:
      return isUnsigned ? HONE_U4 : HONE_I4;
    case 8:
      return isUnsigned ? HONE_U8 : HONE_I8;
    case 16:
      return isUnsigned ? HONE_U16 : HONE_I16;
    case 32:
      return isUnsigned ? HONE_U32 : HONE_I32;
    case 64:
      return isUnsigned ? HONE_U64 : HONE_I64;
    default:
      return std::nullopt;
    }
  }
  if (auto complex = dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32() ? HONE_C64 : HONE_C128;
  return llvm::TypeSwitch<Type, std::optional<hone_dtype>>(type)
      .Case<Float32Type>([](auto) { return HONE_F32; })
      .Case<Float16Type>([](auto) { return HONE_F16; })
      .Case<BFloat16Type>([](auto) { return HONE_BF16; })
      .Case<Float64Type>([](auto) { return HONE_F64; })
      .Case<Float8E4M3FNType>([](auto) { return HONE_F8E4M3FN; })
      .Case<Float8E4M3FNUZType>([](auto) { return HONE_F8E4M3FNUZ; })
      .Case<Float8E5M2Type>([](auto) { return HONE_F8E5M2; })
      .Case<Float8E5M2FNUZType>([](auto) { return HONE_F8E5M2FNUZ; })
      .Case<Float8E8M0FNUType>([](auto) { return HONE_F8E8M0; })
      .Case<Float4E2M1FNType>([](auto) { return HONE_F4E2M1; })
      .Default([](Type) { return std::nullopt; });
}

/// `attrs` are the function's about this value; without them the type speaks for itself.
static FailureOr<io::TensorInfo> describe(func::FuncOp function, RankedTensorType type, DictionaryAttr attrs,
                                          std::string name) {
  io::TensorInfo info;
  info.name = std::move(name);
  ArrayAttr dims;
  if (attrs) {
    if (auto given = attrs.getAs<StringAttr>(onnxir::kNameAttr))
      info.name = given.str();
    if (auto source = attrs.getAs<TypeAttr>(onnxir::kSourceTypeAttr))
      if (auto ranked = dyn_cast<RankedTensorType>(source.getValue()); ranked && ranked.getRank() == type.getRank())
        type = RankedTensorType::get(type.getShape(), ranked.getElementType());
    dims = attrs.getAs<ArrayAttr>(onnxir::kDimsAttr);
  }
  std::optional<hone_dtype> dtype = getDtype(type.getElementType());
  if (!dtype)
    return function.emitError() << "unsupported element type " << type.getElementType() << " of '" << info.name << "'";
  info.dtype = *dtype;
  bool named = dims && static_cast<int64_t>(dims.size()) == type.getRank();
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      info.shape.push_back(io::Dim::fixed(type.getDimSize(dim)));
    else
      info.shape.push_back(io::Dim::symbolic(named ? cast<StringAttr>(dims[dim]).str() : std::string()));
  }
  return info;
}

/// What is known of the rows that the elements of `argument` number.
static void describeLookups(BlockArgument argument, func::FuncOp function, io::TensorInfo &info) {
  Attribute attribute = function.getArgAttr(argument.getArgNumber(), kLookupRowsAttrName);
  LookupRows rows = LookupRows::get(attribute).value_or(LookupRows());
  info.rows = rows.rows;
  info.rowOffset = rows.offset;
}

static std::vector<io::LimitInfo> describeLimits(func::FuncOp function) {
  std::vector<io::LimitInfo> infos;
  for (PositionLimit &limit :
       getPositionLimits(function->getAttr(kPositionLimitsAttrName)).value_or(SmallVector<PositionLimit>())) {
    io::LimitInfo &info = infos.emplace_back();
    for (std::string &size : limit.sizes)
      if (size == analysis::kHeldLengthName)
        info.countsHeld = true;
      else
        info.sizes.push_back(std::move(size));
    info.most = limit.most;
    info.table = std::move(limit.table);
  }
  return infos;
}

/// The number of sequences of a call: the leading size of the tokens, which are the first input. Gets a name if it has none.
static io::Dim nameBatch(io::EntryInfo &entry) {
  if (entry.inputs.empty() || entry.inputs.front().shape.empty())
    return io::Dim::symbolic("batch");
  io::Dim &batch = entry.inputs.front().shape.front();
  if (!batch.isFixed() && batch.symbol.empty())
    batch = io::Dim::symbolic("batch");
  return batch;
}

static FailureOr<io::TensorInfo> describeSlot(StateOp state, SlotAttr slot, const io::Dim &batch) {
  auto type = cast<RankedTensorType>(slot.getType());
  io::TensorInfo info;
  info.name = slot.getName().str();
  std::optional<hone_dtype> dtype = getDtype(type.getElementType());
  if (!dtype)
    return state.emitError() << "unsupported element type " << type.getElementType() << " of state '" << info.name
                             << "'";
  info.dtype = *dtype;
  info.appendAxis = slot.getAxis();
  if (FlatSymbolRefAttr beginning = slot.getBeginning())
    info.beginning = getTensorName(SymbolTable::lookupNearestSymbolFrom<ParamOp>(state, beginning), /*number=*/0);
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool grows = info.appendAxis == static_cast<int64_t>(dim), isKnown = !ShapedType::isDynamic(size);
    if (!grows && !isKnown && dim != 0)
      return state.emitError() << "expected the sizes of state '" << info.name
                               << "' to be fixed but for its batch and the axis that grows, but got " << type;
    info.shape.push_back(grows ? io::Dim::fixed(0) : isKnown ? io::Dim::fixed(size) : batch);
  }
  return info;
}

/// What sessions keep of a state that is bounded.
static std::optional<io::RetentionInfo> describeRetention(StateOp state) {
  std::optional<Retention> retention = Retention::get(state->getAttr(kRetentionAttrName));
  if (!retention)
    return std::nullopt;
  io::RetentionInfo info = {retention->block, retention->pooling, retention->accumulates, retention->sharesHeads, {}};
  for (const LayerRetention &layer : retention->layers)
    info.layers.push_back({layer.keys, layer.values, layer.queries, layer.budget, layer.sinks, layer.recent});
  return info;
}

/// The state that `entry` keeps: what the entry calls the number of its sequences, slots do as well.
static LogicalResult describeState(StateOp state, io::EntryInfo &entry, io::Manifest &manifest) {
  entry.state = state.getSymName().str();
  const io::StateInfo *known = manifest.state(entry.state);
  if (known && entry.inputs.empty()) // it names no sizes
    return success();
  io::Dim batch = nameBatch(entry);
  io::StateInfo info;
  info.name = entry.state;
  info.retention = describeRetention(state);
  for (SlotAttr slot : state.getSlots().getAsRange<SlotAttr>()) {
    FailureOr<io::TensorInfo> described = describeSlot(state, slot, batch);
    if (failed(described))
      return failure();
    info.slots.push_back(std::move(*described));
  }
  if (!known) {
    manifest.states.push_back(std::move(info));
    return success();
  }
  for (const auto &[slot, other] : llvm::zip_equal(info.slots, known->slots))
    if (io::shapeText(slot.shape) != io::shapeText(other.shape))
      return state.emitError() << "expected entries of one state to name the sizes of slot '" << slot.name
                               << "' alike, but got " << io::shapeText(slot.shape) << " in '" << entry.name << "' and "
                               << io::shapeText(other.shape);
  return success();
}

/// The state of a function that takes one and returns it; null of one that keeps none.
static FailureOr<StateOp> findState(func::FuncOp function) {
  StateOp state;
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    auto kept = dyn_cast<KvType>(type);
    if (!kept)
      continue;
    StateOp found = StateOp::lookup(function, kept);
    if (!found)
      return function.emitError() << "expected " << kept.getState() << " to be a state of the module";
    if (state && state != found)
      return function.emitError() << "expected a function to keep one state, but got @" << state.getSymName() << " and "
                                  << kept.getState();
    state = found;
  }
  return state;
}

static LogicalResult describeEntry(func::FuncOp function, io::Manifest &manifest) {
  io::EntryInfo entry;
  entry.name = function.getName().str();
  FailureOr<StateOp> state = findState(function);
  if (failed(state))
    return failure();
  auto add = [&](Type type, DictionaryAttr attrs, std::string name,
                 std::vector<io::TensorInfo> &into) -> LogicalResult {
    if (isa<KvType>(type))
      return success();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return function.emitError() << "unsupported type " << type << " of '" << name
                                  << "'; supported: tensors of known rank";
    FailureOr<io::TensorInfo> info = describe(function, tensor, attrs, name);
    if (succeeded(info))
      into.push_back(std::move(*info));
    return info;
  };
  for (BlockArgument argument : function.getArguments()) {
    size_t count = entry.inputs.size();
    unsigned i = argument.getArgNumber();
    if (failed(add(argument.getType(), function.getArgAttrDict(i), "input" + std::to_string(i), entry.inputs)))
      return failure();
    if (entry.inputs.size() == count)
      continue;
    describeLookups(argument, function, entry.inputs.back());
    entry.inputs.back().isContext = *state && function.getArgAttr(i, HoneDialect::getContextAttrName());
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(add(type, function.getResultAttrDict(i), "output" + std::to_string(i), entry.outputs)))
      return failure();
  entry.limits = describeLimits(function);
  entry.hasOwnLengths = function.walk([](KvLagOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (*state && failed(describeState(*state, entry, manifest)))
    return failure();
  manifest.entries.push_back(std::move(entry));
  return success();
}

LogicalResult describeEntries(ModuleOp module, io::Manifest &manifest) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && !function.isPrivate() && failed(describeEntry(function, manifest)))
      return failure();
  if (manifest.entries.empty())
    return module.emitError() << "expected a function to compile, but the module has none";
  return success();
}

void describeLayouts(ModuleOp module, io::Manifest &manifest) {
  for (io::StateInfo &state : manifest.states)
    for (auto [attr, info] : llvm::zip_equal(module.lookupSymbol<StateOp>(state.name).getSlots(), state.slots))
      if (auto layout = dyn_cast_or_null<StateLayoutInterface>(cast<SlotAttr>(attr).getType().getEncoding())) {
        info.layout = *io::layoutFromName(layout.getLayoutName().str());
        info.bits = layout.getIntegerBits();
      }
}

std::vector<std::string> listGatheredWeights(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::MapVector<Operation *, bool> gathered;
  module.walk([&](GetParamOp get) {
    bool onlyRows = llvm::all_of(
        get->getUses(), [](OpOperand &use) { return isLookedUp(use) || isa<tensor::ExtractOp>(use.getOwner()); });
    auto [entry, isNew] = gathered.try_emplace(symbols.lookup(get.getName()), onlyRows);
    entry->second &= onlyRows;
  });
  std::vector<std::string> names;
  for (auto [op, onlyRows] : gathered) {
    auto param = cast<ParamOp>(op);
    if (onlyRows && param.getTensorType().getRank() > 1)
      for (size_t i = 0, planes = getPlanes(param.getTensorType()).size(); i < planes; ++i)
        names.push_back(getTensorName(param, i));
  }
  llvm::sort(names);
  return names;
}

std::vector<std::string> listKernels(ModuleOp module) {
  llvm::StringSet<> names;
  module.walk([&](hrt::KernelOp kernel) { names.insert(kernel.getName()); });
  std::vector<std::string> kernels;
  for (const auto &name : names)
    kernels.push_back(name.first().str());
  llvm::sort(kernels);
  return kernels;
}

} // namespace hone
