// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-observe-inputs: the inputs of linear layers are shown to whoever runs the program.

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Observation.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/IntEqClasses.h"

namespace hone {
#define GEN_PASS_DEF_OBSERVEINPUTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// The weight of one expert that `linear` multiplies with, or null.
static tensor::ExtractSliceOp getExpert(LinearOp linear) {
  return linear.getWeight().getDefiningOp<tensor::ExtractSliceOp>();
}

/// What reads the parameter that `linear` multiplies with, or has an expert of, or null.
static GetParamOp getRead(LinearOp linear) {
  auto expert = getExpert(linear);
  Value weight = expert ? expert.getSource() : Value(linear.getWeight());
  if (auto unpack = weight.getDefiningOp<UnpackOp>(); unpack && expert)
    weight = unpack.getTensor();
  return weight.getDefiningOp<GetParamOp>();
}

/// The name of that parameter, or of the expert in it, or null.
static StringAttr getWeightName(LinearOp linear) {
  GetParamOp get = getRead(linear);
  if (!get)
    return nullptr;
  auto expert = getExpert(linear);
  if (!expert || expert.getStaticSize(0) == 0)
    return get.getNameAttr().getAttr();
  int64_t number = expert.getStaticOffset(0) / expert.getStaticSize(0);
  return StringAttr::get(linear.getContext(), getExpertName(get.getName(), number));
}

std::vector<ObservedSite> listObservedSites(ModuleOp module) {
  std::vector<ObservedSite> sites;
  llvm::DenseSet<StringAttr> seen;
  module.walk([&](LinearOp linear) {
    StringAttr weight = getWeightName(linear);
    for (Operation *user : linear.getX().getUsers()) {
      auto observe = dyn_cast<ObserveOp>(user);
      if (!observe || !weight || !seen.insert(weight).second)
        continue;
      sites.resize(std::max<size_t>(sites.size(), observe.getSite() + 1));
      ObservedSite &site = sites[observe.getSite()];
      site.width = linear.getWeight().getType().getDimSize(1);
      site.weights.push_back(weight.str());
      if (auto param = module.lookupSymbol<ParamOp>(getRead(linear).getName()))
        site.scales = getChannelScales(param).vec();
    }
  });
  return sites;
}

/// The site of each of `layers`: the same for layers that share an input or a weight.
static llvm::IntEqClasses numberSites(MutableArrayRef<LinearOp> layers) {
  llvm::IntEqClasses sites(layers.size());
  llvm::DenseMap<Value, unsigned> firstOfInput;
  llvm::DenseMap<StringAttr, unsigned> firstOfWeight;
  for (auto [i, layer] : llvm::enumerate(layers)) {
    sites.join(i, firstOfInput.try_emplace(layer.getX(), i).first->second);
    sites.join(i, firstOfWeight.try_emplace(getWeightName(layer), i).first->second);
  }
  sites.compress();
  return sites;
}

namespace {
struct ObserveInputs : impl::ObserveInputsBase<ObserveInputs> {
  using ObserveInputsBase::ObserveInputsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal()) {
      emitError(getOperation().getLoc()) << "expected a function '" << entry << "' to observe, but the module has none";
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    function.walk([&](WeightedOpInterface op) { splitIntoProducts(rewriter, op); });
    SmallVector<LinearOp> layers = findLayers(function);
    llvm::IntEqClasses sites = numberSites(layers);
    llvm::DenseSet<Value> observed;
    for (auto [i, layer] : llvm::enumerate(layers)) {
      if (observed.insert(layer.getX()).second)
        observe(layer.getX(), sites[i]);
      remark::passed(layer.getLoc(), options())
          << ("the input of " + getWeightName(layer).getValue() + " is observed at site " + Twine(sites[i])).str();
    }
  }

private:
  static remark::RemarkOpts options() { return remark::RemarkOpts::name("Observed").category("hone-observe-inputs"); }

  void skip(Operation *op, StringRef reason) {
    ++numSkipped;
    remark::missed(op->getLoc(), options()) << ("its input is not observed: " + reason).str();
  }

  SmallVector<LinearOp> findLayers(func::FuncOp function) {
    SmallVector<LinearOp> layers;
    function.walk([&](LinearOp linear) {
      if (getWeightName(linear))
        layers.push_back(linear);
      else
        skip(linear, "its weight is no parameter");
    });
    return layers;
  }

  void observe(Value input, int64_t site) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(input);
    ObserveOp::create(builder, input.getLoc(), input, site);
    ++numObserved;
  }
};
} // namespace

} // namespace hone
