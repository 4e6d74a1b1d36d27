// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feature maps between convolutions and poolings have their channels last: kernels store sums of sixteen channels as they are, and read
// sixteen channels of a window at once. Maps that one loop goes over, or one copy, have the same layout.

#include "StridedUses.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/kernels/descriptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace hone {
#define GEN_PASS_DEF_CHOOSELAYOUTS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Channels that fill a vector of a kernel.
constexpr int64_t kVectorChannels = 16;

/// Whether its elements lie in the same order with the channels last.
bool isSameInBoth(MemRefType type) {
  ArrayRef<int64_t> shape = type.getShape();
  return shape.size() < 3 || shape[1] == 1 || llvm::all_of(shape.drop_front(2), [](int64_t size) { return size == 1; });
}

/// Whether it may be a map `[N, C, spatial...]` whose channels fill vectors.
bool mayBeMap(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  return type.getLayout().isIdentity() && !isSameInBoth(type) && !type.isDynamicDim(1) &&
         type.getDimSize(1) >= kVectorChannels;
}

class Layouts {
public:
  explicit Layouts(func::FuncOp function) {
    function.walk([&](memref::AllocOp alloc) {
      if (mayBeMap(alloc)) {
        maps.push_back(alloc);
        groups.insert(alloc);
        claim(alloc.getResult(), alloc);
      }
    });
    for (memref::AllocOp map : maps)
      readUses(map.getResult(), map);
  }

  /// Gives their layouts to the maps of groups for which it pays.
  unsigned apply();

private:
  /// Says that the value and its views are of the map.
  void claim(Value value, memref::AllocOp map);
  void readUses(Value value, memref::AllocOp map);
  void readKernel(hrt::KernelOp kernel, OpOperand &use, memref::AllocOp map);
  /// The operands of a loop, and what it loads, get the layout of the map.
  void joinLoop(linalg::LinalgOp loop, memref::AllocOp map);
  /// The other buffer gets the layout of the map.
  void join(Value other, memref::AllocOp map);
  void block(memref::AllocOp map, StringRef why) { blockers.try_emplace(map, why); }

  SmallVector<memref::AllocOp> maps;
  DenseMap<Value, Operation *> owners;
  llvm::EquivalenceClasses<Operation *> groups;
  DenseMap<Operation *, StringRef> blockers;
  DenseSet<Operation *> convolved; // maps that kernels with windows read or write
};

} // namespace

void Layouts::claim(Value value, memref::AllocOp map) {
  owners[value] = map;
  for (Operation *user : value.getUsers())
    if (isStridedView(user))
      claim(user->getResult(0), map);
}

void Layouts::join(Value other, memref::AllocOp map) {
  auto type = dyn_cast<MemRefType>(other.getType());
  if (Operation *owner = owners.lookup(other))
    groups.unionSets(owner, map);
  else if (!type || !isSameInBoth(type))
    block(map, "a loop, copy or sum has it together with a buffer that keeps its layout");
}

void Layouts::joinLoop(linalg::LinalgOp loop, memref::AllocOp map) {
  for (Value operand : loop->getOperands())
    if (isa<BaseMemRefType>(operand.getType()))
      join(operand, map);
  loop->walk([&](memref::LoadOp load) { join(load.getMemRef(), map); });
}

void Layouts::readKernel(hrt::KernelOp kernel, OpOperand &use, memref::AllocOp map) {
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.getName().str());
  std::string_view signature = info ? info->signature.name : "";
  if (signature != "Convolution" && signature != "PackedConvolution" && signature != "Pool")
    return block(map, "a kernel without windows uses it");
  int64_t residual = kernels::indexOf(*info, "residual");
  bool isResidual = residual >= 0 && kernel.getInputs()[residual] == use.get();
  if (isResidual)
    join(kernel.getOutputs()[0], map);
  else
    convolved.insert(map);
  if (residual >= 0 && kernel.isDpsInit(&use))
    join(kernel.getInputs()[residual], map);
}

void Layouts::readUses(Value value, memref::AllocOp map) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (!takesStrides(use)) {
      block(map, "something other than kernels and loops uses it");
    } else if (isStridedView(user)) {
      readUses(user->getResult(0), map);
    } else if (auto kernel = dyn_cast<hrt::KernelOp>(user)) {
      readKernel(kernel, use, map);
    } else if (auto copy = dyn_cast<memref::CopyOp>(user)) {
      join(copy.getSource(), map);
      join(copy.getTarget(), map);
    } else if (isa<linalg::TransposeOp>(user)) {
      continue; // copies whatever the layout is
    } else if (auto loop = dyn_cast<linalg::LinalgOp>(user)) {
      joinLoop(loop, map);
    } else if (isa<memref::LoadOp>(user)) {
      if (auto loop = user->getParentOfType<linalg::LinalgOp>())
        joinLoop(loop, map);
    }
  }
}

/// A buffer with the channels last in the place of the map.
static void moveChannelsLast(memref::AllocOp map) {
  MemRefType type = map.getType();
  auto rank = static_cast<unsigned>(type.getRank());
  SmallVector<int64_t> shape{type.getDimSize(0)};
  llvm::append_range(shape, type.getShape().drop_front(2));
  shape.push_back(type.getDimSize(1));
  SmallVector<unsigned> order{0, rank - 1};
  for (unsigned dim = 1; dim + 1 < rank; ++dim)
    order.push_back(dim);
  OpBuilder b(map);
  Value last = memref::AllocOp::create(b, map.getLoc(), MemRefType::get(shape, type.getElementType()),
                                       map.getDynamicSizes(), map.getAlignmentAttr());
  auto permutation = AffineMap::getPermutationMap(order, b.getContext());
  replaceBuffer(map, memref::TransposeOp::create(b, map.getLoc(), last, AffineMapAttr::get(permutation)));
  map.erase();
}

unsigned Layouts::apply() {
  DenseMap<Operation *, StringRef> blocked; // by the leaders of groups
  DenseSet<Operation *> paying;
  for (memref::AllocOp map : maps) {
    Operation *leader = groups.getLeaderValue(map);
    if (auto found = blockers.find(map); found != blockers.end())
      blocked.try_emplace(leader, found->second);
    if (convolved.contains(map))
      paying.insert(leader);
  }
  unsigned moved = 0;
  auto options = remark::RemarkOpts::name("Layout").category("hone-choose-layouts");
  for (memref::AllocOp map : maps) {
    Operation *leader = groups.getLeaderValue(map);
    if (!paying.contains(leader))
      continue;
    if (auto found = blocked.find(leader); found != blocked.end()) {
      remark::missed(map.getLoc(), options) << ("channels stay before positions: " + found->second).str();
      continue;
    }
    remark::passed(map.getLoc(), options) << "channels lie after positions";
    moveChannelsLast(map);
    ++moved;
  }
  return moved;
}

namespace {
struct ChooseLayouts : impl::ChooseLayoutsBase<ChooseLayouts> {
  void runOnOperation() override { numMoved += Layouts(getOperation()).apply(); }
};
} // namespace

} // namespace hone
