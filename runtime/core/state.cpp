// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths, rollback and copies of session state.

#include "core/state.h"

#include <atomic>

namespace hone::rt {

using io::invalid;

/// No two states of a process have the same.
static uint64_t nextIdentity() {
  static std::atomic<uint64_t> count;
  return ++count;
}

State::State(std::span<const io::TensorInfo> slots, StateMemory &memory, std::vector<StateBuffer> beginnings)
    : identity(nextIdentity()), memory(&memory), prefetching(memory.makePrefetcher()) {
  beginnings.resize(slots.size());
  for (size_t number = 0; number < slots.size(); ++number)
    all.emplace_back(slots[number], number, memory, std::move(beginnings[number]));
  placeTrained();
}

/// Slots of a training, whose parameters begin as those of the file, stay in one piece of memory.
void State::placeTrained() {
  if (std::ranges::all_of(all, [](const Slot &slot) { return slot.description().beginning.empty(); }))
    return;
  std::vector<uint64_t> bytes;
  for (const Slot &slot : all) {
    std::optional<int64_t> each = slot.fixedBytes();
    if (!each)
      return;
    bytes.push_back(static_cast<uint64_t>(*each));
  }
  std::vector<std::shared_ptr<void>> places = memory->makePlaces(bytes);
  for (size_t number = 0; number < places.size(); ++number)
    all[number].setPlace(std::move(places[number]));
}

void State::begin(const Symbols &callSymbols) {
  if (prefetching)
    prefetching->beginCall();
  if (length() > 0)
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
  if (length() > 0)
    return invalid("cannot set padding after ", length(), " positions; reset the session first");
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
  current.reset();
  lastBegin = positions;
  positions.grow(grown.value_or(0));
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
  current.reset();
  mayShare = false;
  for (Slot &slot : all)
    slot.forget();
  fixed.clear();
  positions = lastBegin = Lengths();
  lastEviction = 0;
  hasBegun = false;
}

/// A slot that cannot return to what it was before, or null.
const Slot *State::findWithoutHistory() const {
  auto found = std::ranges::find_if(all, [](const Slot &slot) { return !slot.grows(); });
  return found == all.end() ? nullptr : &*found;
}

/// Those of more positions than stay unchanged. The beginning of a session is never lost.
void State::loseCheckpoints(const Lengths &unchanged) {
  std::erase_if(checkpoints, [&](const std::weak_ptr<Checkpoint> &each) {
    std::shared_ptr<Checkpoint> point = each.lock();
    if (point && point->hasBegun && !point->positions.fitIn(unchanged))
      point->isLost = true;
    return !point || point->isLost;
  });
}

/// Before positions are dropped, or written in the place of others: all but `unchanged`.
absl::Status State::dropAfter(const Lengths &unchanged) {
  current.reset();
  if (mayShare) {
    std::vector<HeldTensor> tensors = heldTensors();
    HONE_RETURN_IF_ERROR(memory->makeWritable(tensors, unchanged.shortest()));
    setHeld(tensors);
  }
  loseCheckpoints(unchanged);
  return absl::OkStatus();
}

int64_t State::sequences() const {
  auto grows = std::ranges::find_if(all, [](const Slot &slot) { return slot.sequences() > 0; });
  return grows == all.end() ? 1 : grows->sequences();
}

absl::Status State::truncateTo(const Lengths &lengths) {
  if (lengths == positions)
    return absl::OkStatus();
  if (lengths.longest() == 0) {
    forgetSlots();
    return absl::OkStatus();
  }
  if (lengths.shortest() < lastEviction)
    return invalid("cannot truncate to ", lengths.shortest(), " positions: of the first ", lastEviction,
                   " some were evicted");
  if (const Slot *slot = findWithoutHistory())
    return invalid("cannot truncate to ", lengths.longest(), " positions: state '", slot->description().name,
                   "' has no history to return to");
  HONE_RETURN_IF_ERROR(dropAfter(lengths));
  positions = lengths;
  lastBegin = lastBegin.cutTo(lengths);
  return absl::OkStatus();
}

absl::Status State::truncate(int64_t length) {
  if (length < 0 || length > this->length())
    return invalid("cannot truncate to ", length, " positions: the session holds ", this->length());
  return truncateTo(positions.cutTo(length));
}

/// Whether there is one thing for each sequence.
static absl::Status checkSequences(std::string_view what, size_t given, int64_t sequences) {
  if (static_cast<int64_t>(given) == sequences)
    return absl::OkStatus();
  return invalid("expected ", what, " of ", sequences, " sequences, but got ", given);
}

absl::Status State::truncateEach(std::vector<int64_t> lengths) {
  HONE_RETURN_IF_ERROR(checkSequences("lengths", lengths.size(), sequences()));
  for (size_t i = 0; i < lengths.size(); ++i)
    if (int64_t held = positions.of(static_cast<int64_t>(i)); lengths[i] < 0 || lengths[i] > held)
      return invalid("cannot truncate sequence ", i, " to ", lengths[i], " positions: it holds ", held);
  return truncateTo(Lengths(std::move(lengths)));
}

absl::Status State::checkKept(int64_t sequence, std::span<const int64_t> kept) const {
  int64_t before = -1, count = positions.of(sequence) - lastBegin.of(sequence);
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
  std::vector<std::vector<int64_t>> each(static_cast<size_t>(sequences()), {kept.begin(), kept.end()});
  return keepEach(each);
}

absl::Status State::keepEach(std::span<const std::vector<int64_t>> kept) {
  HONE_RETURN_IF_ERROR(checkSequences("positions to keep", kept.size(), sequences()));
  std::vector<int64_t> lengths, unchanged;
  std::vector<PositionMove> moves;
  for (int64_t sequence = 0; sequence < static_cast<int64_t>(kept.size()); ++sequence) {
    const std::vector<int64_t> &own = kept[static_cast<size_t>(sequence)];
    HONE_RETURN_IF_ERROR(checkKept(sequence, own));
    int64_t begin = lastBegin.of(sequence), same = 0; // positions that stay where they are
    for (int64_t i = 0; i < std::ssize(own); ++i)
      if (int64_t number = own[static_cast<size_t>(i)]; number == i)
        ++same;
      else
        moves.push_back({sequence, begin + number, begin + i});
    lengths.push_back(begin + std::ssize(own));
    unchanged.push_back(begin + same);
  }
  Lengths after(std::move(lengths));
  if (moves.empty())
    return truncateTo(after);
  HONE_RETURN_IF_ERROR(dropAfter(Lengths(std::move(unchanged))));
  HONE_RETURN_IF_ERROR(memory->betweenCalls([&] { return move(moves); }));
  positions = after;
  return absl::OkStatus();
}

absl::Status State::evict(size_t slot, std::span<const std::vector<int64_t>> kept) {
  HONE_RETURN_IF_ERROR(dropAfter(0));
  HONE_RETURN_IF_ERROR(memory->betweenCalls([&] { return all[slot].evict(kept, heldBy(slot)); }));
  lastEviction = length();
  return absl::OkStatus();
}

/// Of positions of the text.
absl::Status State::move(std::span<const PositionMove> moves) {
  std::vector<Positions> rows;
  for (Slot &slot : all) {
    std::vector<PositionMove> own; // of a slot that has evicted positions
    if (slot.evicted() > 0)
      own.assign(moves.begin(), moves.end());
    for (PositionMove &each : own)
      each.from -= slot.evicted(), each.to -= slot.evicted();
    if (slot.isInBlocks()) {
      slot.moveInBlocks(own.empty() ? moves : own);
    } else if (own.empty()) {
      rows.push_back(slot.positions());
    } else {
      Positions part = slot.positions();
      HONE_RETURN_IF_ERROR(memory->move({&part, 1}, own));
    }
  }
  return memory->move(rows, moves);
}

std::shared_ptr<const Checkpoint> State::checkpoint() {
  auto point = std::make_shared<Checkpoint>();
  point->state = identity;
  point->positions = positions;
  point->hasBegun = hasBegun;
  for (const Slot &slot : all)
    point->contents.push_back(slot.grows() ? StateBuffer() : slot.content());
  point->isLost = std::ranges::any_of(all, [](const Slot &slot) { return !slot.checkHeld().ok(); });
  std::erase_if(checkpoints, [](const std::weak_ptr<Checkpoint> &each) { return each.expired(); });
  checkpoints.push_back(point);
  return point;
}

absl::Status State::restore(const Checkpoint &point) {
  if (point.state != identity)
    return invalid("cannot return to a checkpoint of another session");
  if (point.isLost)
    return invalid("cannot return to ", point.positions.longest(),
                   " positions: some of them were dropped after the checkpoint");
  HONE_RETURN_IF_ERROR(dropAfter(point.positions));
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

/// A copy of `content` where the slot's state is.
absl::StatusOr<StateBuffer> State::uploadTo(Slot &slot, const hone_tensor &content) {
  const io::TensorInfo &info = slot.description();
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> held, firstSizes(info, fixed));
  std::span<const int64_t> sizes(content.sizes, static_cast<size_t>(content.rank));
  if (slot.grows() || content.dtype != info.dtype || !std::ranges::equal(sizes, held))
    return invalid("cannot set state '", info.name, "' of ", io::dtypeName(info.dtype), " ", io::shapeText(info.shape),
                   " to ", io::dtypeName(static_cast<hone_dtype>(content.dtype)), " ", io::shapeText(sizes));
  return slot.upload(content);
}

absl::Status State::setContents(std::span<const hone_tensor> contents) {
  if (contents.size() != all.size())
    return invalid("expected ", all.size(), " tensors of the state, but got ", contents.size());
  std::vector<StateBuffer> copies;
  for (size_t i = 0; i < all.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(copies.emplace_back(), uploadTo(all[i], contents[i]));
  }
  for (size_t i = 0; i < all.size(); ++i)
    HONE_RETURN_IF_ERROR(all[i].beginWith(fixed, std::move(copies[i]), 0));
  hasBegun = true;
  return absl::OkStatus();
}

/// Whether states can become the sequences of one.
absl::Status State::checkJoined(std::span<const State *const> others) const {
  for (const State *other : others)
    if (other->lastEviction > 0)
      return invalid("cannot join a session of whose first ", other->lastEviction, " positions some were evicted");
  if (others.size() == 1)
    return absl::OkStatus();
  for (const State *other : others) {
    if (const Slot *slot = other->findWithoutHistory())
      return invalid("cannot join sequences: state '", slot->description().name, "' does not grow by positions");
    for (const Slot &slot : other->all)
      if (const io::TensorInfo &info = slot.description(); *info.appendAxis == 0 || info.shape[0].isFixed())
        return invalid("cannot join sequences: state '", info.name, "' has a fixed number of them");
    if (!other->hasBegun)
      return invalid("cannot join a session that holds no positions");
  }
  return absl::OkStatus();
}

/// Those of the first with as many sequences as all have.
Symbols State::joinSymbols(std::span<const State *const> others) const {
  Symbols joined = others.front()->fixed;
  if (others.size() == 1) // whose slots may have no axis at all
    return joined;
  int64_t count = 0;
  for (const State *other : others)
    count += other->sequences();
  for (const Slot &slot : all)
    if (auto batch = joined.find(slot.description().shape[0].symbol); batch != joined.end())
      batch->second.size = count;
  return joined;
}

/// What slots that grow hold, one after the other.
std::vector<HeldTensor> State::heldTensors() const {
  std::vector<HeldTensor> tensors;
  for (const Slot &slot : all)
    if (std::optional<HeldTensor> held = slot.held())
      tensors.push_back(*std::move(held));
  return tensors;
}

void State::setHeld(std::span<const HeldTensor> tensors) {
  for (const HeldTensor &held : tensors)
    all[held.tensor.slot].setHeld(held.buffer);
}

/// By the memory of who shall share it, whose copies it makes.
absl::Status State::takeSnapshot(StateMemory &by) {
  if (current || length() == 0 || lastEviction > 0) // slots that evicted hold fewer
    return absl::OkStatus();
  std::vector<HeldTensor> tensors = heldTensors();
  HONE_ASSIGN_OR_RETURN(current, by.snapshot(tensors, positions.shortest(), positions.longest()));
  setHeld(tensors);
  return absl::OkStatus();
}

absl::Status State::shareSlots(State &other) {
  HONE_RETURN_IF_ERROR(other.takeSnapshot(*memory));
  const State *only = &other;
  if (!other.current)
    return copySlots({&only, 1});
  HONE_ASSIGN_OR_RETURN(std::vector<StateBuffer> buffers, memory->open(*other.current));
  mayShare = other.mayShare = true;
  size_t opened = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Slot *slot = &other.all[i];
    const Lengths *lengths = &other.positions;
    if (slot->held())
      all[i].adopt(*slot, std::move(buffers[opened++]), other.length());
    else
      HONE_RETURN_IF_ERROR(all[i].copyFrom({&slot, 1}, {&lengths, 1}));
  }
  return absl::OkStatus();
}

absl::Status State::copySlots(std::span<const State *const> others) {
  std::vector<const Lengths *> lengths;
  for (const State *other : others)
    lengths.push_back(&other->positions);
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<const Slot *> slots;
    for (const State *other : others)
      slots.push_back(&other->all[i]);
    HONE_RETURN_IF_ERROR(all[i].copyFrom(slots, lengths));
  }
  return absl::OkStatus();
}

absl::Status State::forkFrom(State &other) {
  const State *only = &other;
  absl::Status status = become({&only, 1}, [&] { return shareSlots(other); });
  if (!status.ok())
    other.current.reset(); // its copies may not have been made
  return status;
}

absl::Status State::copyFrom(std::span<const State *const> others) {
  HONE_RETURN_IF_ERROR(checkJoined(others));
  return become(others, [&] { return copySlots(others); });
}

absl::Status State::become(std::span<const State *const> others, absl::FunctionRef<absl::Status()> copy) {
  forgetSlots();
  Symbols joined = joinSymbols(others);
  begin(joined);
  if (absl::Status status = memory->betweenCalls(copy); !status.ok()) {
    forgetSlots();
    return status;
  }
  const State &first = *others.front();
  fixed = std::move(joined);
  logitRows = first.logitRows;
  hasBegun = first.hasBegun;
  if (others.size() == 1) {
    paddings = first.paddings;
    positions = first.positions;
    lastBegin = first.lastBegin;
    lastEviction = first.lastEviction;
    return absl::OkStatus();
  }
  std::vector<int64_t> each;
  for (const State *other : others)
    for (int64_t sequence = 0; sequence < other->sequences(); ++sequence) {
      each.push_back(other->positions.of(sequence));
      paddings.push_back(other->padding(sequence));
    }
  positions = Lengths(std::move(each));
  lastBegin = positions;
  return absl::OkStatus();
}

absl::Status State::beginWith(const Symbols &symbols, int64_t length, std::vector<StateBuffer> contents) {
  reset();
  begin(symbols);
  for (size_t i = 0; i < all.size(); ++i) {
    if (absl::Status status = all[i].beginWith(symbols, std::move(contents[i]), length); !status.ok()) {
      forgetSlots();
      return status;
    }
    fixSymbols(all[i].description(), symbols);
  }
  hasBegun = true;
  positions = lastBegin = length;
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
