// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growth, views and rollback of session state.

#include "core/state.h"

#include <algorithm>
#include <atomic>

namespace hone::rt {
namespace {

using io::invalid;

constexpr int kElementAxis = 3; // of a slot in blocks

std::span<const int64_t> sizesOf(const hone_tensor &tensor) { return {tensor.sizes, static_cast<size_t>(tensor.rank)}; }

/// The sizes of a slot without positions where those of other axes are known; else an error that names the first that is not.
absl::StatusOr<std::vector<int64_t>> firstSizes(const io::TensorInfo &info, const Symbols &symbols) {
  std::vector<int64_t> sizes;
  for (const io::Dim &dim : info.shape) {
    auto known = symbols.find(dim.symbol);
    if (!dim.isFixed() && known == symbols.end())
      return invalid("the size '", dim.symbol, "' of state '", info.name, "' occurs in no input");
    sizes.push_back(dim.isFixed() ? dim.size : known->second.size);
  }
  return sizes;
}

} // namespace

absl::Status Slot::adoptSizes(hone_dtype dtype, std::span<const int64_t> given) {
  // What is kept in blocks comes as f32, whatever it is rounded to.
  hone_dtype elements = info->layout == io::StateLayout::Rows ? info->dtype : HONE_F32;
  bool fits = dtype == elements && given.size() == info->shape.size();
  for (size_t axis = 0; fits && axis < given.size(); ++axis) {
    if (info->appendAxis == static_cast<int64_t>(axis))
      continue;
    fits = (!info->shape[axis].isFixed() || info->shape[axis].size == given[axis]) &&
           (sizes.empty() || sizes[axis] == given[axis]);
  }
  if (!fits)
    return invalid("state '", info->name, "' takes ", io::dtypeName(elements), " ",
                   sizes.empty() ? io::shapeText(info->shape) : io::shapeText(sizes), ", but the program appends ",
                   io::dtypeName(dtype), " ", io::shapeText(given));
  if (sizes.empty())
    setSizes({given.begin(), given.end()});
  if (writer && !writer->isSupported())
    return invalid("state '", info->name, "' is laid out for kernels that this processor cannot run");
  return absl::OkStatus();
}

/// The sizes before the first append. Memory that was kept serves again where it has them.
void Slot::setSizes(std::vector<int64_t> first) {
  sizes = std::move(first);
  if (grows()) {
    int64_t &capacity = sizes[*info->appendAxis];
    capacity = buffer.owner ? keptSizes[*info->appendAxis] : 0;
    if (sizes != keptSizes) {
      capacity = written = 0;
      buffer = {};
    }
  }
  if (info->layout != io::StateLayout::Rows)
    writer.emplace(*info, sizes[kElementAxis]);
}

absl::Status Slot::makeRoom(int64_t positions, int64_t used) {
  auto axis = static_cast<size_t>(*info->appendAxis);
  if (buffer.owner && positions <= sizes[axis])
    return absl::OkStatus();
  GrowingTensor needed = {number, info->dtype, sizes, axis};
  needed.sizes[axis] = positions > 0 ? std::max(positions, reserved) : 0;
  if (writer) {
    needed.dtype = writer->elements();
    needed.sizes[kElementAxis] = writer->width();
    used = wholeBlocks(used);
  }
  HONE_ASSIGN_OR_RETURN(StateBuffer grown, memory->extend(needed, writer ? wholeBlocks(1) : 1, buffer, used));
  if (buffer.owner)
    retired.push_back(std::move(buffer));
  buffer = std::move(grown);
  sizes[axis] = buffer.view.sizes[axis];
  return absl::OkStatus();
}

hone_tensor Slot::viewOf(int64_t positions) const {
  hone_tensor view = sliceOf(buffer.view, static_cast<size_t>(*info->appendAxis), 0, positions);
  if (writer)
    view.sizes[kElementAxis] = sizes[kElementAxis];
  return view;
}

/// Writes positions from `first` on, after which there is nothing.
absl::Status Slot::write(const hone_tensor &fresh, int64_t first) {
  auto axis = static_cast<size_t>(*info->appendAxis);
  int64_t end = first + fresh.sizes[axis];
  if (!writer)
    return memory->copy(fresh, sliceOf(buffer.view, axis, first, fresh.sizes[axis]));
  writer->write(fresh, buffer.view, first);
  // What a rollback left may be no number, which a weight of 0 does not make 0. After the last write its block holds zeros.
  bool isCleared = first == lastEnd && end <= wholeBlocks(first);
  if (!isCleared)
    writer->clear(buffer.view, end, std::min(written, wholeBlocks(end)));
  written = std::max(written, end);
  lastEnd = end;
  return absl::OkStatus();
}

absl::StatusOr<hone_tensor> Slot::append(const hone_tensor &fresh, int64_t length) {
  HONE_RETURN_IF_ERROR(adoptSizes(static_cast<hone_dtype>(fresh.dtype), sizesOf(fresh)));
  if (!grows()) {
    HONE_RETURN_IF_ERROR(replace(fresh));
    return replacement->view;
  }
  int64_t axis = *info->appendAxis, used = length + pending, count = fresh.sizes[axis];
  HONE_RETURN_IF_ERROR(makeRoom(used + count, used));
  HONE_RETURN_IF_ERROR(write(fresh, used));
  pending += count;
  return viewOf(used + count);
}

absl::StatusOr<hone_tensor> Slot::extend(std::span<const int64_t> fresh, int64_t length) {
  if (!grows() || info->layout != io::StateLayout::Rows)
    return invalid("cannot extend state '", info->name, "': it does not grow by rows");
  HONE_RETURN_IF_ERROR(adoptSizes(info->dtype, fresh));
  auto axis = static_cast<size_t>(*info->appendAxis);
  int64_t used = length + pending, count = fresh[axis];
  HONE_RETURN_IF_ERROR(makeRoom(used + count, used));
  pending += count;
  return sliceOf(buffer.view, axis, used, count);
}

absl::Status Slot::replace(const hone_tensor &fresh) {
  HONE_ASSIGN_OR_RETURN(StateBuffer copy, memory->copyOf(fresh));
  if (replacement)
    retired.push_back(*std::move(replacement));
  replacement = std::move(copy);
  return absl::OkStatus();
}

absl::StatusOr<hone_tensor> Slot::view(int64_t length, const Symbols &symbols) {
  if (sizes.empty()) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> first, firstSizes(*info, symbols));
    setSizes(std::move(first));
    if (!grows()) {
      HONE_ASSIGN_OR_RETURN(buffer, memory->zeros(info->dtype, sizes));
    } else {
      HONE_RETURN_IF_ERROR(makeRoom(0, 0));
    }
  }
  if (grows())
    return viewOf(length + pending);
  return replacement ? replacement->view : buffer.view;
}

absl::Status Slot::gather(int64_t first, std::span<const int64_t> kept) {
  auto axis = static_cast<size_t>(*info->appendAxis);
  for (size_t i = 0; i < kept.size(); ++i) {
    int64_t from = first + kept[i], to = first + static_cast<int64_t>(i);
    if (from == to)
      continue;
    if (writer)
      writer->move(buffer.view, from, to);
    else
      HONE_RETURN_IF_ERROR(memory->copy(sliceOf(buffer.view, axis, from, 1), sliceOf(buffer.view, axis, to, 1)));
  }
  return absl::OkStatus();
}

absl::Status Slot::copyFrom(const Slot &other, int64_t length) {
  if (other.sizes.empty())
    return absl::OkStatus();
  setSizes(other.sizes);
  reserve(other.reserved);
  if (!grows()) {
    if (other.buffer.owner) {
      HONE_ASSIGN_OR_RETURN(buffer, memory->copyOf(other.buffer.view));
    }
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(makeRoom(length, 0));
  auto axis = static_cast<size_t>(*info->appendAxis);
  written = writer ? wholeBlocks(length) : length;
  lastEnd = -1; // positions that `other` has dropped may be in the last block
  return memory->copy(sliceOf(other.buffer.view, axis, 0, written), sliceOf(buffer.view, axis, 0, written));
}

void Slot::endCall(bool keep) {
  pending = 0;
  retired.clear();
  if (keep && replacement)
    buffer = *std::move(replacement);
  replacement.reset();
}

void Slot::forget() {
  endCall(false);
  if (sizes.empty())
    return;
  keptSizes = std::move(sizes);
  sizes.clear();
  writer.reset();
  if (!grows() || !memory->keepsRoom())
    buffer = {};
}

/// No two states of a process have the same.
static uint64_t nextIdentity() {
  static std::atomic<uint64_t> count;
  return ++count;
}

State::State(std::span<const io::TensorInfo> slots, StateMemory &memory) : identity(nextIdentity()), memory(&memory) {
  for (size_t number = 0; number < slots.size(); ++number)
    all.emplace_back(slots[number], number, memory);
}

void State::begin(const Symbols &callSymbols) {
  if (positions > 0)
    return;
  std::vector<GrowingTensor> tensors;
  for (size_t number = 0; number < all.size(); ++number) {
    const io::TensorInfo &info = all[number].description();
    absl::StatusOr<std::vector<int64_t>> sizes = firstSizes(info, callSymbols);
    if (all[number].grows() && sizes.ok())
      tensors.push_back({number, info.dtype, *std::move(sizes), static_cast<size_t>(*info.appendAxis)});
  }
  memory->plan(std::move(tensors));
}

absl::Status State::setPadding(std::vector<int64_t> perSequence) {
  if (positions > 0)
    return invalid("cannot set padding after ", positions, " positions; reset the session first");
  auto wrong = std::ranges::find_if(perSequence, [](int64_t count) { return count < 0 || count > kMostPositions; });
  if (wrong != perSequence.end())
    return invalid("expected padding to be 0 to ", kMostPositions, ", but got ", *wrong);
  paddings = std::move(perSequence);
  return absl::OkStatus();
}

absl::Status State::checkPadding(const Symbols &callSymbols) const {
  for (const Slot &slot : all) {
    if (paddings.empty() || !slot.grows() || slot.description().appendAxis == 0)
      continue;
    const io::Dim &batch = slot.description().shape[0];
    auto known = callSymbols.find(batch.symbol);
    if (!batch.isFixed() && known == callSymbols.end())
      continue;
    if (int64_t sequences = batch.isFixed() ? batch.size : known->second.size;
        sequences < static_cast<int64_t>(paddings.size()))
      return invalid("expected padding of at most ", sequences, " sequences, but got ", paddings.size());
  }
  return absl::OkStatus();
}

int64_t State::padding(int64_t sequence) const {
  bool known = sequence >= 0 && sequence < static_cast<int64_t>(paddings.size());
  return known ? paddings[static_cast<size_t>(sequence)] : 0;
}

absl::Status State::commit(const Symbols &callSymbols) {
  std::optional<int64_t> grown;
  for (const Slot &slot : all) {
    if (!slot.grows())
      continue;
    if (grown && *grown != slot.appended()) {
      absl::Status status = absl::InternalError(io::cat("the program appended ", slot.appended(), " positions to '",
                                                        slot.description().name, "', but ", *grown, " to another"));
      rollback();
      return status;
    }
    grown = slot.appended();
  }
  for (const Slot &slot : all) // first, as it takes memory; what follows does not
    fixSymbols(slot.description(), callSymbols);
  lastBegin = positions;
  positions += grown.value_or(0);
  hasBegun = true;
  for (Slot &slot : all)
    slot.endCall(true);
  return absl::OkStatus();
}

void State::fixSymbols(const io::TensorInfo &slot, const Symbols &callSymbols) {
  for (size_t axis = 0; axis < slot.shape.size(); ++axis) {
    const io::Dim &dim = slot.shape[axis];
    auto known = callSymbols.find(dim.symbol);
    if (!dim.isFixed() && slot.appendAxis != static_cast<int64_t>(axis) && known != callSymbols.end())
      fixed.try_emplace(dim.symbol, Symbol{known->second.size, "the session's state"});
  }
}

void State::rollback() {
  if (!hasBegun)
    return forgetSlots();
  for (Slot &slot : all)
    slot.endCall(false);
}

void State::forgetSlots() {
  loseCheckpoints(-1);
  for (Slot &slot : all)
    slot.forget();
  fixed.clear();
  positions = lastBegin = 0;
  hasBegun = false;
}

/// A slot that cannot return to what it was before, or null.
const Slot *State::findWithoutHistory() const {
  auto found = std::ranges::find_if(all, [](const Slot &slot) { return !slot.grows(); });
  return found == all.end() ? nullptr : &*found;
}

/// Those of more than the first `beyond` positions, which are about to change. The beginning of a session is never lost.
void State::loseCheckpoints(int64_t beyond) {
  std::erase_if(checkpoints, [beyond](const std::weak_ptr<Checkpoint> &each) {
    std::shared_ptr<Checkpoint> point = each.lock();
    if (point && point->hasBegun && point->positions > beyond)
      point->isLost = true;
    return !point || point->isLost;
  });
}

absl::Status State::truncate(int64_t length) {
  if (length < 0 || length > positions)
    return invalid("cannot truncate to ", length, " positions: the session holds ", positions);
  if (length == positions)
    return absl::OkStatus();
  if (length == 0) {
    forgetSlots();
    return absl::OkStatus();
  }
  if (const Slot *slot = findWithoutHistory())
    return invalid("cannot truncate to ", length, " positions: state '", slot->description().name,
                   "' has no history to return to");
  loseCheckpoints(length);
  positions = length;
  lastBegin = std::min(lastBegin, length);
  return absl::OkStatus();
}

absl::Status State::checkKept(std::span<const int64_t> kept) const {
  int64_t before = -1, count = positions - lastBegin;
  for (int64_t number : kept) {
    if (number <= before || number >= count)
      return invalid("expected the positions to keep to ascend from 0 to ", count - 1, ", but got ", number, " after ",
                     before);
    before = number;
  }
  const Slot *slot = findWithoutHistory();
  if (slot && static_cast<int64_t>(kept.size()) < count)
    return invalid("cannot keep ", kept.size(), " of the last ", count, " positions: state '", slot->description().name,
                   "' has no history to return to");
  return absl::OkStatus();
}

absl::Status State::keep(std::span<const int64_t> kept) {
  HONE_RETURN_IF_ERROR(checkKept(kept));
  auto count = static_cast<int64_t>(kept.size());
  if (count == positions - lastBegin)
    return absl::OkStatus();
  int64_t same = 0; // positions that stay where they are
  while (same < count && kept[static_cast<size_t>(same)] == same)
    ++same;
  if (same == count)
    return truncate(lastBegin + count);
  loseCheckpoints(lastBegin + same);
  HONE_RETURN_IF_ERROR(memory->betweenCalls([&]() -> absl::Status {
    for (Slot &slot : all)
      HONE_RETURN_IF_ERROR(slot.gather(lastBegin, kept));
    return absl::OkStatus();
  }));
  positions = lastBegin + count;
  return absl::OkStatus();
}

std::shared_ptr<const Checkpoint> State::checkpoint() {
  auto point = std::make_shared<Checkpoint>();
  point->state = identity;
  point->positions = positions;
  point->hasBegun = hasBegun;
  for (const Slot &slot : all)
    point->contents.push_back(slot.grows() ? StateBuffer() : slot.content());
  std::erase_if(checkpoints, [](const std::weak_ptr<Checkpoint> &each) { return each.expired(); });
  checkpoints.push_back(point);
  return point;
}

absl::Status State::restore(const Checkpoint &point) {
  if (point.state != identity)
    return invalid("cannot return to a checkpoint of another session");
  if (point.isLost)
    return invalid("cannot return to ", point.positions, " positions: some of them were dropped after the checkpoint");
  loseCheckpoints(point.positions);
  if (!point.hasBegun) {
    forgetSlots();
    return absl::OkStatus();
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i].grows())
      all[i].setContent(point.contents[i]);
  positions = lastBegin = point.positions;
  return absl::OkStatus();
}

absl::Status State::copyFrom(const State &other) {
  forgetSlots();
  begin(other.fixed);
  absl::Status status = memory->betweenCalls([&]() -> absl::Status {
    for (size_t i = 0; i < all.size(); ++i)
      HONE_RETURN_IF_ERROR(all[i].copyFrom(other.all[i], other.positions));
    return absl::OkStatus();
  });
  if (!status.ok()) {
    forgetSlots();
    return status;
  }
  fixed = other.fixed;
  paddings = other.paddings;
  logitRows = other.logitRows;
  positions = other.positions;
  lastBegin = other.lastBegin;
  hasBegun = other.hasBegun;
  return absl::OkStatus();
}

void State::reset() {
  forgetSlots();
  paddings.clear();
}

void State::reserve(int64_t count) {
  for (Slot &slot : all)
    slot.reserve(count);
}

} // namespace hone::rt
