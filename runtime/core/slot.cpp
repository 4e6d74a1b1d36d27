// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growth, views and moves of a slot.

#include "core/slot.h"

#include "hone/io/pages.h"

#include <cstring>

namespace hone::rt {

using io::invalid;

static constexpr int kElementAxis = 3; // of a slot in blocks

static std::span<const int64_t> sizesOf(const hone_tensor &tensor) {
  return {tensor.sizes, static_cast<size_t>(tensor.rank)};
}

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

absl::Status Slot::adoptSizes(hone_dtype dtype, std::span<const int64_t> given) {
  // What is kept in blocks comes as f32, whatever it is rounded to.
  hone_dtype elements = info->layout == io::StateLayout::Rows ? info->dtype : HONE_F32;
  bool fits = dtype == elements && given.size() == info->shape.size();
  for (size_t axis = 0; fits && axis < given.size(); ++axis) {
    if (info->appendAxis == static_cast<int64_t>(axis))
      continue;
    fits = (!info->shape[axis].isFixed() || info->shape[axis].size == given[axis]) &&
           (!isBegun || sizes[axis] == given[axis]);
  }
  if (!fits)
    return invalid("state '", info->name, "' takes ", io::dtypeName(elements), " ",
                   !isBegun ? io::shapeText(info->shape) : io::shapeText(sizes), ", but the program appends ",
                   io::dtypeName(dtype), " ", io::shapeText(given));
  if (!isBegun)
    setSizes({given.begin(), given.end()});
  if (writer && !writer->isSupported())
    return invalid("state '", info->name, "' is laid out for kernels that this processor cannot run");
  return absl::OkStatus();
}

/// The sizes before the first append. Memory that was kept serves again where it has them.
void Slot::setSizes(std::vector<int64_t> first) {
  sizes = std::move(first);
  isBegun = true;
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

/// The tensor with room for so many positions and what is reserved, as the memory has it.
GrowingTensor Slot::roomFor(int64_t positions) const {
  auto axis = static_cast<size_t>(*info->appendAxis);
  GrowingTensor room = {number, info->dtype, sizes, axis};
  room.sizes[axis] = positions > 0 ? std::max(positions, reserved) : 0;
  if (writer) {
    room.dtype = writer->elements();
    room.sizes[kElementAxis] = writer->width();
  }
  return room;
}

absl::Status Slot::makeRoom(int64_t positions, int64_t used) {
  auto axis = static_cast<size_t>(*info->appendAxis);
  if (buffer.owner && positions <= sizes[axis])
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(StateBuffer grown, memory->extend(roomFor(positions), blockPositions(), buffer,
                                                          writer ? wholeBlocks(used) : used));
  if (buffer.owner)
    retired.push_back(std::move(buffer));
  setHeld(std::move(grown));
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
  writtenEach.clear();
  lastEnd = end;
  return absl::OkStatus();
}

/// The same of each sequence, from its own end on.
absl::Status Slot::writeEach(const hone_tensor &fresh, const Lengths &lengths) {
  if (*info->appendAxis == 0)
    return invalid("state '", info->name, "' has no sequences that could differ in length");
  writtenEach.resize(static_cast<size_t>(sequences()), written);
  for (int64_t sequence = 0; sequence < sequences(); ++sequence) {
    hone_tensor part = sliceOf(fresh, 0, sequence, 1), room = sliceOf(buffer.view, 0, sequence, 1);
    auto axis = static_cast<size_t>(*info->appendAxis);
    int64_t first = lengths.of(sequence) + pending, end = first + part.sizes[axis];
    if (!writer) {
      HONE_RETURN_IF_ERROR(memory->copy(part, sliceOf(room, axis, first, part.sizes[axis])));
      continue;
    }
    writer->write(part, room, first);
    int64_t &bound = writtenEach[static_cast<size_t>(sequence)];
    writer->clear(room, end, std::min(bound, wholeBlocks(end)));
    bound = bound > wholeBlocks(end) ? bound : end;
    written = std::max(written, end);
  }
  lastEnd = -1;
  return absl::OkStatus();
}

absl::StatusOr<hone_tensor> Slot::append(const hone_tensor &fresh, const Lengths &lengths) {
  HONE_RETURN_IF_ERROR(adoptSizes(static_cast<hone_dtype>(fresh.dtype), sizesOf(fresh)));
  if (!grows()) {
    HONE_RETURN_IF_ERROR(replace(fresh));
    return replacement ? replacement->view : buffer.view;
  }
  int64_t axis = *info->appendAxis, used = lengths.longest() - gone + pending, count = fresh.sizes[axis];
  HONE_RETURN_IF_ERROR(makeRoom(used + count, used));
  HONE_RETURN_IF_ERROR(lengths.areEqual() ? write(fresh, used) : writeEach(fresh, lengths));
  pending += count;
  return viewOf(used + count);
}

absl::StatusOr<hone_tensor> Slot::extend(std::span<const int64_t> fresh, const Lengths &lengths) {
  if (!grows() || info->layout != io::StateLayout::Rows)
    return invalid("cannot extend state '", info->name, "': it does not grow by rows");
  HONE_RETURN_IF_ERROR(adoptSizes(info->dtype, fresh));
  auto axis = static_cast<size_t>(*info->appendAxis);
  int64_t used = lengths.longest() - gone + pending, count = fresh[axis];
  HONE_RETURN_IF_ERROR(makeRoom(used + count, used));
  pending += count;
  return sliceOf(buffer.view, axis, used, count);
}

absl::Status Slot::replace(const hone_tensor &fresh) {
  if (isUpdated && !replacement && fresh.data == buffer.view.data) // written in place
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(StateBuffer copy, memory->copyOf(fresh));
  if (replacement)
    retired.push_back(*std::move(replacement));
  replacement = std::move(copy);
  return absl::OkStatus();
}

absl::Status Slot::checkHeld() const {
  if (isLost)
    return invalid("state '", info->name, "' is lost: the call that updated it failed");
  return absl::OkStatus();
}

absl::StatusOr<StateBuffer> Slot::contentOnHost() const {
  HONE_RETURN_IF_ERROR(checkHeld());
  return memory->download(buffer);
}

void Slot::setContent(StateBuffer content) {
  if (!content.owner)
    return forget(); // at its beginning, which the next view asks for
  buffer = std::move(content);
  isLost = false;
}

std::optional<int64_t> Slot::fixedBytes() const {
  absl::StatusOr<std::vector<int64_t>> shape = firstSizes(*info, {});
  return grows() || !shape.ok() ? std::nullopt : io::tensorBytes(info->dtype, *shape);
}

/// A buffer in the slot's own place, whose elements may be any, unless something refers to what is there.
std::optional<StateBuffer> Slot::takePlace(std::span<const int64_t> shape) {
  if (place.use_count() != 1)
    return std::nullopt;
  isPlaceClean = false;
  return StateBuffer{io::denseView(place.get(), info->dtype, shape),
                     std::shared_ptr<void>(place.get(), [held = place](void *) {})};
}

/// Elements whose bits are 0.
absl::StatusOr<StateBuffer> Slot::makeZeros() {
  bool isClean = isPlaceClean;
  std::optional<StateBuffer> own = takePlace(sizes);
  if (!own)
    return memory->zeros(info->dtype, sizes);
  if (!isClean)
    std::memset(own->view.data, 0, static_cast<size_t>(*io::tensorBytes(info->dtype, sizes)));
  return *std::move(own);
}

/// A copy in the slot's place if that is free, else one that `copy` makes.
absl::StatusOr<StateBuffer> Slot::copyOwn(const hone_tensor &content,
                                          absl::FunctionRef<absl::StatusOr<StateBuffer>()> copy) {
  std::optional<StateBuffer> own = takePlace(sizesOf(content));
  if (!own)
    return copy();
  HONE_RETURN_IF_ERROR(memory->copy(content, own->view));
  return *std::move(own);
}

absl::StatusOr<StateBuffer> Slot::upload(const hone_tensor &content) {
  return copyOwn(content, [&] { return memory->upload(content); });
}

absl::StatusOr<hone_tensor> Slot::update(const Symbols &symbols) {
  HONE_RETURN_IF_ERROR(view(/*length=*/0, symbols).status());
  if (grows() || replacement)
    return invalid("cannot update state '", info->name, "' in place: it ",
                   grows() ? "grows" : "was replaced in this call");
  if (!isUpdated && buffer.owner.use_count() > 1) { // of checkpoints, or of the file
    HONE_ASSIGN_OR_RETURN(buffer, copyOwn(buffer.view, [&] { return memory->copyOf(buffer.view); }));
    if (beginning.isMapped) // the session does not read it any more
      io::releasePages(beginning.view.data,
                       static_cast<uint64_t>(io::elementCount(beginning.view) * io::dtypeBytes(info->dtype)));
  }
  isUpdated = true;
  return buffer.view;
}

absl::StatusOr<hone_tensor> Slot::view(int64_t length, const Symbols &symbols) {
  HONE_RETURN_IF_ERROR(checkHeld());
  if (!isBegun) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> first, firstSizes(*info, symbols));
    setSizes(std::move(first));
    if (beginning.owner) {
      buffer = beginning;
    } else if (!grows()) {
      HONE_ASSIGN_OR_RETURN(buffer, makeZeros());
    } else {
      HONE_RETURN_IF_ERROR(makeRoom(0, 0));
    }
  }
  if (grows())
    return viewOf(length - gone + pending);
  return replacement ? replacement->view : buffer.view;
}

void Slot::moveInBlocks(std::span<const PositionMove> moves) {
  for (const PositionMove &move : moves)
    writer->move(sliceOf(buffer.view, 0, move.sequence, 1), move.from, move.to);
}

absl::Status Slot::evict(std::span<const std::vector<int64_t>> kept, int64_t held) {
  if (!grows() || *info->appendAxis < 2 || sequences() != 1 || (kept.size() != 1 && std::ssize(kept) != sizes[1]))
    return invalid("cannot evict positions of state '", info->name, "': it does not keep one sequence by heads");
  for (int64_t head = 0; head < sizes[1]; ++head) {
    std::vector<PositionMove> moves;
    const std::vector<int64_t> &own = kept[kept.size() == 1 ? 0 : static_cast<size_t>(head)];
    for (int64_t to = 0; to < std::ssize(own); ++to)
      if (int64_t from = own[static_cast<size_t>(to)]; from != to)
        moves.push_back({0, from, to});
    Positions part = {sliceOf(buffer.view, 1, head, 1), static_cast<size_t>(*info->appendAxis)};
    if (writer)
      for (const PositionMove &move : moves)
        writer->move(part.view, move.from, move.to);
    else
      HONE_RETURN_IF_ERROR(memory->move({&part, 1}, moves));
  }
  int64_t count = std::ssize(kept.front());
  if (writer)
    writer->clear(buffer.view, count, std::min(std::max(written, held), wholeBlocks(count)));
  lastEnd = count;
  gone += held - count;
  return absl::OkStatus();
}

void Slot::clearBlock(char *block, int64_t first) const {
  writer->clear(io::denseView(block, writer->elements(), {{1, 1, blockPositions(), writer->width()}}), first,
                blockPositions());
}

int64_t Slot::sequences() const {
  if (!grows() || !isBegun)
    return 0;
  return *info->appendAxis == 0 ? 1 : sizes[0];
}

std::optional<HeldTensor> Slot::held() const {
  if (!grows() || !isBegun || !buffer.owner)
    return std::nullopt;
  return HeldTensor{roomFor(sizes[static_cast<size_t>(*info->appendAxis)]), blockPositions(), buffer};
}

void Slot::setHeld(StateBuffer held) {
  buffer = std::move(held);
  auto axis = static_cast<size_t>(*info->appendAxis);
  sizes[axis] = buffer.view.sizes[axis];
}

void Slot::adopt(const Slot &other, StateBuffer held, int64_t used) {
  reserve(other.reserved);
  hold(other.sizes, std::move(held), used);
}

void Slot::hold(std::vector<int64_t> first, StateBuffer held, int64_t used) {
  setSizes(std::move(first));
  setHeld(std::move(held));
  holdCopied(used);
}

absl::StatusOr<int64_t> Slot::checkContent(const Symbols &symbols, const hone_tensor &content, int64_t used) const {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> expected, firstSizes(*info, symbols));
  hone_dtype dtype = info->dtype;
  int64_t multiple = 1, room = 0;
  bool hasRoom = true;
  std::span<const int64_t> given(content.sizes, static_cast<size_t>(content.rank));
  if (grows() && given.size() == expected.size()) {
    Slot like(*info, number, *memory);
    like.setSizes(std::move(expected));
    room = given[static_cast<size_t>(*info->appendAxis)];
    GrowingTensor held = like.roomFor(room);
    dtype = held.dtype, expected = std::move(held.sizes), multiple = like.blockPositions();
    hasRoom = room % multiple == 0 && room >= roundUp(used, multiple);
  }
  if (static_cast<hone_dtype>(content.dtype) != dtype || !std::ranges::equal(given, expected) || !hasRoom)
    return invalid("expected state '", info->name, "' of ", io::dtypeName(dtype), " ", io::shapeText(expected),
                   " with room for ", used, " positions, but got ",
                   io::dtypeName(static_cast<hone_dtype>(content.dtype)), " ", io::shapeText(given));
  return multiple;
}

absl::Status Slot::beginWith(const Symbols &symbols, StateBuffer content, int64_t used) {
  isLost = false;
  if (!content.owner)
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> first, firstSizes(*info, symbols));
  if (grows()) {
    hold(std::move(first), std::move(content), used);
  } else {
    setSizes(std::move(first));
    buffer = std::move(content);
  }
  return absl::OkStatus();
}

/// The memory holds `used` positions that were copied with what is after them in a block.
void Slot::holdCopied(int64_t used) {
  written = writer ? wholeBlocks(used) : used;
  writtenEach.clear();
  lastEnd = -1; // positions that others have dropped may be in the last block
}

/// Those of `other` become the sequences from `firstSequence` on.
absl::Status Slot::copyPositions(const Slot &other, const Lengths &lengths, int64_t firstSequence) {
  auto axis = static_cast<size_t>(*info->appendAxis);
  int64_t count = lengths.longest() - other.gone;
  if (writer)
    count = wholeBlocks(count);
  hone_tensor from = sliceOf(other.buffer.view, axis, 0, count), to = sliceOf(buffer.view, axis, 0, count);
  return memory->copy(from, axis == 0 ? to : sliceOf(to, 0, firstSequence, from.sizes[0]));
}

absl::Status Slot::checkAlike(const Slot &other) const {
  std::vector<int64_t> own = sizes, others = other.sizes;
  for (std::vector<int64_t> *each : {&own, &others})
    if (each->size() == sizes.size())
      each->front() = (*each)[static_cast<size_t>(*info->appendAxis)] = 0;
  if (own == others)
    return absl::OkStatus();
  return invalid("cannot join sequences: state '", info->name, "' has the sizes ", io::shapeText(sizes), " of one and ",
                 io::shapeText(other.sizes), " of another");
}

absl::Status Slot::copyFrom(std::span<const Slot *const> others, std::span<const Lengths *const> lengths) {
  const Slot &first = *others.front();
  if (!first.isBegun)
    return absl::OkStatus();
  if (!grows()) {
    setSizes(first.sizes);
    if (first.buffer.owner) {
      HONE_ASSIGN_OR_RETURN(buffer, memory->copyOf(first.buffer.view));
    }
    return absl::OkStatus();
  }
  std::vector<int64_t> all = first.sizes;
  int64_t longest = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    HONE_RETURN_IF_ERROR(first.checkAlike(*others[i]));
    all[0] += i > 0 ? others[i]->sizes[0] : 0;
    longest = std::max(longest, lengths[i]->longest() - others[i]->gone);
    reserve(others[i]->reserved);
  }
  setSizes(std::move(all));
  gone = first.gone;
  HONE_RETURN_IF_ERROR(makeRoom(longest, 0));
  holdCopied(longest);
  int64_t sequence = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    HONE_RETURN_IF_ERROR(copyPositions(*others[i], *lengths[i], sequence));
    sequence += others[i]->sequences();
  }
  return absl::OkStatus();
}

void Slot::endCall(bool keep) {
  pending = 0;
  retired.clear();
  if (keep && replacement)
    buffer = *std::move(replacement);
  replacement.reset();
  isLost |= isUpdated && !keep;
  isUpdated = false;
}

void Slot::forget() {
  endCall(false);
  isLost = false;
  if (!isBegun)
    return;
  keptSizes = std::move(sizes);
  sizes.clear();
  isBegun = false;
  gone = 0;
  writer.reset();
  if (!grows() || !memory->keepsRoom())
    buffer = {};
}

} // namespace hone::rt
