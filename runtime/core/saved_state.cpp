// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Saving and mapping states.

#include "core/saved_state.h"
#include "hone/io/descriptors.h"
#include "hone/io/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

constexpr const char *kFormat = "hone state", *kVersion = "1", *kTokens = "tokens";
constexpr std::string_view kSize = "size.";
constexpr uint64_t kBytesOfWeight = 4096; // of each, by which models differ
constexpr int64_t kLeastSpare = 256;      // positions of room after those that are used

std::string nameOf(const Slot &slot) { return cat("state.", slot.description().name); }

std::string_view bytesOf(const void *data, uint64_t count) { return {static_cast<const char *>(data), count}; }

/// Calls `use` with the bytes that `used` positions have in each run of a dense tensor along an axis, and how many come after them.
void forEachRun(const hone_tensor &tensor, size_t axis, int64_t used,
                absl::FunctionRef<void(std::string_view used, uint64_t rest)> use) {
  Runs runs(static_cast<hone_dtype>(tensor.dtype), {tensor.sizes, static_cast<size_t>(tensor.rank)}, axis);
  const auto *data = static_cast<const char *>(tensor.data);
  auto whole = static_cast<uint64_t>(runs.positionBytes * tensor.sizes[axis]),
       first = static_cast<uint64_t>(runs.positionBytes * used);
  for (int64_t run = 0; run < runs.count; ++run, data += whole)
    use({data, first}, whole - first);
}

/// The same of what a slot holds after `used` positions. A slot that is replaced as a whole is used as a whole.
void forEachRun(const Slot &slot, const hone_tensor &tensor, int64_t multiple, int64_t used,
                absl::FunctionRef<void(std::string_view used, uint64_t rest)> use) {
  if (slot.grows())
    forEachRun(tensor, static_cast<size_t>(*slot.description().appendAxis), roundUp(used, multiple), use);
  else
    forEachRun(tensor, 0, tensor.sizes[0], use);
}

/// The same of what is saved: what was written after `used` positions and then dropped, which a block may still hold, is zero.
void forEachSavedRun(const Slot &slot, const hone_tensor &tensor, int64_t multiple, int64_t used,
                     absl::FunctionRef<void(std::string_view used, uint64_t rest)> use) {
  std::string cleared;
  forEachRun(slot, tensor, multiple, used, [&](std::string_view run, uint64_t rest) {
    if (!slot.grows() || used % multiple == 0)
      return use(run, rest);
    cleared = run;
    uint64_t blockBytes = run.size() / static_cast<uint64_t>(roundUp(used, multiple) / multiple);
    slot.clearBlock(cleared.data() + cleared.size() - blockBytes, used % multiple);
    use(cleared, rest);
  });
}

absl::Status checkSession(const Session &session) {
  const Module &module = session.module();
  if (session.isOnDevice())
    return invalid(module.folder(), ": unsupported target '", module.manifest().target,
                   "' of a state to be saved; supported: cpu");
  if (module.manifest().ranks > 1)
    return invalid(module.folder(), ": a state that several processes have cannot be saved");
  return absl::OkStatus();
}

/// Tensors of the file, and their memory.
struct Held {
  const Slot *slot;
  hone_tensor view;
  int64_t multiple;
  io::StoredTensor stored;
};

absl::StatusOr<std::vector<Held>> heldBy(State &state, int64_t used) {
  std::vector<Held> all;
  for (const Slot &slot : state.slots()) {
    HONE_RETURN_IF_ERROR(slot.checkHeld());
    Held held = {&slot, {}, 1, {nameOf(slot), slot.description().dtype, {}}};
    if (std::optional<HeldTensor> grown = slot.held()) {
      held.view = grown->buffer.view;
      held.multiple = grown->multiple;
    } else if (slot.content().owner) {
      held.view = slot.content().view;
    } else {
      continue;
    }
    held.stored.dtype = static_cast<hone_dtype>(held.view.dtype);
    held.stored.shape.assign(held.view.sizes, held.view.sizes + held.view.rank);
    if (slot.grows())
      held.stored.shape[static_cast<size_t>(*slot.description().appendAxis)] =
          roundUp(used + std::max(used / 8, kLeastSpare), held.multiple);
    all.push_back(std::move(held));
  }
  return all;
}

absl::Status appendZeros(io::SafetensorsWriter &writer, uint64_t count) {
  static constexpr char kZeros[1 << 16] = {};
  for (uint64_t at = 0; at < count; at += sizeof kZeros)
    HONE_RETURN_IF_ERROR(writer.append({kZeros, std::min<uint64_t>(sizeof kZeros, count - at)}));
  return absl::OkStatus();
}

/// Bytes of a run in the file, over those in memory.
uint64_t runBytes(const Held &held, uint64_t inMemory) {
  if (!held.slot->grows())
    return inMemory;
  auto axis = static_cast<size_t>(*held.slot->description().appendAxis);
  return inMemory / static_cast<uint64_t>(held.view.sizes[axis]) * static_cast<uint64_t>(held.stored.shape[axis]);
}

absl::StatusOr<int64_t> parseSize(const std::string &path, const std::string &name, const std::string &text) {
  int64_t size = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0 || size > kMostPositions)
    return invalid(path, ": expected ", name, " to be a size, but it is '", text, "'");
  return size;
}

const std::string &metadataOf(const io::SafetensorsReader &file, const char *name) {
  static const std::string none;
  auto found = file.metadata().find(name);
  return found == file.metadata().end() ? none : found->second;
}

absl::Status checkKind(const std::string &path, const io::SafetensorsReader &file, const Module &module) {
  if (metadataOf(file, "format") != kFormat)
    return invalid(path, ": is not the state of a session");
  const std::string &version = metadataOf(file, "version"), &model = metadataOf(file, "model");
  if (version != kVersion)
    return invalid(path, ": expected version ", kVersion, " of a saved state, but it is '", version, "'");
  HONE_ASSIGN_OR_RETURN(std::string own, modelOf(module));
  if (model != own)
    return invalid(path, ": expected a state of the model ", own, ", but it is of the model '", model, "'");
  return absl::OkStatus();
}

absl::StatusOr<Symbols> symbolsOf(const std::string &path, const io::SafetensorsReader &file) {
  Symbols symbols;
  for (const auto &[name, value] : file.metadata())
    if (name.starts_with(kSize)) {
      HONE_ASSIGN_OR_RETURN(int64_t size, parseSize(path, name, value));
      symbols.emplace(name.substr(kSize.size()), Symbol{size, "the saved state"});
    }
  return symbols;
}

/// The whole file, whose pages are the caller's own once they are written to.
absl::StatusOr<std::shared_ptr<char>> mapPrivately(const std::string &path, uint64_t bytes) {
  uint64_t size = 0;
  HONE_ASSIGN_OR_RETURN(int descriptor, io::openForReading(path, size));
  void *address = size == bytes ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  close(descriptor);
  if (size != bytes)
    return invalid(path, ": changed while it was read");
  if (address == MAP_FAILED)
    return absl::ResourceExhaustedError(cat("cannot map ", path, ": out of memory"));
  return std::shared_ptr<char>(static_cast<char *>(address), [size](char *mapped) { munmap(mapped, size); });
}

} // namespace

absl::StatusOr<std::string> modelOf(const Module &module) {
  HONE_ASSIGN_OR_RETURN(std::string manifest, io::readFile(module.folder() + "/manifest.json"));
  uint32_t sum = io::crcOf(manifest);
  const io::SafetensorsReader &weights = module.weights();
  for (const io::StoredTensor &tensor : weights.tensors()) {
    sum = io::crcOf(tensor.name, sum);
    sum = io::crcOf(bytesOf(weights.bytesOf(tensor), std::min(tensor.bytes, kBytesOfWeight)), sum);
  }
  return io::crcText(sum);
}

absl::Status checkSavable(const std::string &path, const Session &session) {
  HONE_RETURN_IF_ERROR(checkSession(session));
  return io::FileWriter::create(path).status();
}

absl::Status saveState(const std::string &path, Session &session, std::span<const int64_t> tokens) {
  State &state = session.state();
  HONE_RETURN_IF_ERROR(checkSession(session));
  if (state.evictedAt() > 0)
    return invalid("cannot save the state of a session of whose first ", state.evictedAt(),
                   " positions some were evicted");
  if (tokens.empty() || std::ssize(tokens) != state.length() || !state.lengths().areEqual() || state.padding(0) != 0)
    return invalid("cannot save the state of a session after ", tokens.size(), " tokens: it holds ", state.length());
  for (const Slot &slot : state.slots())
    if (slot.sequences() > 1)
      return invalid("cannot save the state of ", slot.sequences(), " texts");
  HONE_ASSIGN_OR_RETURN(std::string model, modelOf(session.module()));
  HONE_ASSIGN_OR_RETURN(std::vector<Held> all, heldBy(state, state.length()));
  uint32_t sum = io::crcOf(bytesOf(tokens.data(), tokens.size_bytes()));
  for (const Held &held : all)
    forEachSavedRun(*held.slot, held.view, held.multiple, state.length(),
                    [&](std::string_view used, uint64_t) { sum = io::crcOf(used, sum); });
  std::map<std::string, std::string> metadata = {
      {"format", kFormat}, {"version", kVersion}, {"model", model}, {"crc32", io::crcText(sum)}};
  for (const auto &[name, symbol] : state.symbols())
    metadata.emplace(cat(kSize, name), cat(symbol.size));
  std::vector<io::StoredTensor> tensors = {{kTokens, HONE_I64, {std::ssize(tokens)}}};
  for (const Held &held : all)
    tensors.push_back(held.stored);
  HONE_ASSIGN_OR_RETURN(io::SafetensorsWriter writer,
                        io::SafetensorsWriter::create(path, std::move(tensors), metadata));
  HONE_RETURN_IF_ERROR(writer.append(bytesOf(tokens.data(), tokens.size_bytes())));
  absl::Status status;
  for (const Held &held : all)
    forEachSavedRun(*held.slot, held.view, held.multiple, state.length(), [&](std::string_view used, uint64_t rest) {
      if (status.ok())
        status = writer.append(used);
      if (status.ok())
        status = appendZeros(writer, runBytes(held, used.size() + rest) - used.size());
    });
  HONE_RETURN_IF_ERROR(status);
  return writer.commit();
}

absl::StatusOr<std::vector<int64_t>> restoreState(const std::string &path, Session &session) {
  session.state().reset();
  HONE_RETURN_IF_ERROR(checkSession(session));
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader file, io::SafetensorsReader::open(path));
  HONE_RETURN_IF_ERROR(checkKind(path, file, session.module()));
  HONE_ASSIGN_OR_RETURN(Symbols symbols, symbolsOf(path, file));
  const io::StoredTensor *tokens = file.find(kTokens);
  if (!tokens || tokens->dtype != HONE_I64 || tokens->shape.size() != 1 || tokens->shape[0] < 1 ||
      tokens->shape[0] > kMostPositions)
    return invalid(path, ": has no tokens");
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<char> mapped, mapPrivately(path, file.dataOffset() + file.allBytes().size()));
  auto dataOf = [&](const io::StoredTensor &tensor) { return mapped.get() + file.dataOffset() + tensor.offset; };
  std::vector<int64_t> text(static_cast<size_t>(tokens->shape[0]));
  std::memcpy(text.data(), dataOf(*tokens), tokens->bytes);
  uint32_t sum = io::crcOf(bytesOf(text.data(), tokens->bytes));
  std::vector<StateBuffer> contents;
  for (const Slot &slot : session.state().slots()) {
    StateBuffer &content = contents.emplace_back();
    const io::StoredTensor *tensor = file.find(nameOf(slot));
    if (!tensor && !slot.grows())
      continue; // at its beginning
    if (!tensor)
      return invalid(path, ": has no ", nameOf(slot));
    content = {io::denseView(dataOf(*tensor), tensor->dtype, tensor->shape), mapped};
    absl::StatusOr<int64_t> multiple = slot.checkContent(symbols, content.view, std::ssize(text));
    if (!multiple.ok())
      return invalid(path, ": ", multiple.status().message());
    forEachRun(slot, content.view, *multiple, std::ssize(text),
               [&](std::string_view used, uint64_t) { sum = io::crcOf(used, sum); });
  }
  if (io::crcText(sum) != metadataOf(file, "crc32"))
    return invalid(path, ": is damaged: expected the checksum ", metadataOf(file, "crc32"), ", but it is ",
                   io::crcText(sum));
  HONE_RETURN_IF_ERROR(session.state().beginWith(symbols, std::ssize(text), std::move(contents)));
  return text;
}

} // namespace hone::rt
