// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-narrow-scales: scales of f32 stored in f16, half of the bytes, where that changes nothing or less than rounded activations
// do.

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_NARROWSCALES
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

static constexpr float kLeastNormal = 0x1p-14f; // of f16: what is smaller has fewer than 11 bits

namespace {

/// The scales of a parameter in f16, or why they stay as they are.
struct NarrowedScales {
  AffineAttr encoding;
  Attribute scales;
  std::string blocker;
};

struct NarrowScales : impl::NarrowScalesBase<NarrowScales> {
  using NarrowScalesBase::NarrowScalesBase;

  void runOnOperation() override;
};

} // namespace

static AffineAttr withHalfScales(AffineAttr encoding) {
  MLIRContext *context = encoding.getContext();
  return AffineAttr::get(context, encoding.getBits(), encoding.getGroup(), Float16Type::get(context),
                         encoding.getHasZeros(), encoding.getIsSigned(), encoding.getTransposed(),
                         encoding.getActivations(), encoding.getAtLeast());
}

/// The plane of a parameter that is called `scales`, and its number.
static std::pair<EncodingPlane, size_t> findScales(RankedTensorType type) {
  for (auto [i, plane] : llvm::enumerate(getPlanes(type)))
    if (plane.name == "scales")
      return {plane, i};
  llvm_unreachable("#hone.affine has scales");
}

/// Scales may change where `mayRound`. Fails after an error, where the bytes of `param` cannot be read.
static FailureOr<NarrowedScales> narrow(ParamOp param, AffineAttr encoding, bool mayRound) {
  RankedTensorType type = param.getTensorType();
  NarrowedScales narrowed{withHalfScales(encoding), nullptr, ""};
  FailureOr<SmallVector<StoredBytes>> planes = openPlanes(param);
  if (failed(planes))
    return failure();
  ArrayRef<char> from = (*planes)[findScales(type).second].get();
  EncodingPlane to = findScales(RankedTensorType::get(type.getShape(), type.getElementType(), narrowed.encoding)).first;
  PlainElements floats(encoding.getScales()), halves(narrowed.encoding.getScales());
  auto count = static_cast<int64_t>(from.size() / sizeof(float));
  SmallVector<char, 0> bytes(*getDenseBytes(to.type));
  for (int64_t i = 0; i < count; ++i) {
    float scale = floats.load(from, i);
    halves.store(bytes, i, scale);
    float half = halves.load(bytes, i);
    if (half == scale)
      continue;
    if (!mayRound)
      narrowed.blocker = "a scale is no f16, and its products round no activations";
    else if (!std::isfinite(half) || std::abs(scale) < kLeastNormal)
      narrowed.blocker = "a scale is out of the range of f16";
    if (!narrowed.blocker.empty())
      return narrowed;
  }
  narrowed.scales = makeResource(to.type, bytes);
  return narrowed;
}

/// Stores the scales of `param`, and has `reads` read them.
static void setScales(ParamOp param, ArrayRef<GetParamOp> reads, const NarrowedScales &narrowed) {
  RankedTensorType type = param.getTensorType();
  auto changed = RankedTensorType::get(type.getShape(), type.getElementType(), narrowed.encoding);
  NamedAttrList planes(cast<DictionaryAttr>(param.getStorage()));
  planes.set("scales", narrowed.scales);
  param.setStorageAttr(planes.getDictionary(param.getContext()));
  param.setType(changed);
  for (GetParamOp read : reads)
    read.getResult().setType(changed);
}

void NarrowScales::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  auto all = findReads(module);
  llvm::MapVector<Operation *, NarrowedScales> found;
  for (auto &[op, reads] : all) {
    auto param = cast<ParamOp>(op);
    auto encoding = dyn_cast_or_null<AffineAttr>(param.getTensorType().getEncoding());
    if (!encoding || !encoding.getScales().isF32() || !isa<DictionaryAttr>(param.getStorage()) ||
        !getProductBlocker(reads).empty())
      continue;
    FailureOr<NarrowedScales> narrowed = narrow(param, encoding, /*mayRound=*/encoding.getActivations() != 0 && !exact);
    if (failed(narrowed))
      return signalPassFailure();
    found.insert({op, std::move(*narrowed)});
  }
  if (found.empty())
    return markAllAnalysesPreserved();
  if (failed(keepFingerprint(module)))
    return signalPassFailure();
  auto options = remark::RemarkOpts::name("Narrowed").category("hone-narrow-scales");
  for (auto &[op, narrowed] : found) {
    auto param = cast<ParamOp>(op);
    std::string blocker = narrowed.blocker;
    for (ParamOp other : findPartners(all[op], symbols))
      if (auto it = found.find(other); blocker.empty() && it != found.end() && !it->second.blocker.empty())
        blocker = ("kernels read it like " + other.getSymName() + ", of which " + it->second.blocker).str();
    if (!blocker.empty()) {
      remark::missed(param.getLoc(), options) << (param.getSymName() + " keeps scales of f32: " + blocker).str();
      continue;
    }
    setScales(param, all[op], narrowed);
    remark::passed(param.getLoc(), options) << (param.getSymName() + " has scales of f16").str();
    ++numNarrowed;
  }
}

} // namespace hone
