// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signatures of programs as text.

#include "hone/io/signature.h"

#include "stored_types.h"

#include <algorithm>

namespace hone::io {
namespace {

/// Text that grows: a line of it is made for each weight whenever an artefact is loaded.
class Lines {
public:
  template <typename... Parts> Lines &add(const Parts &...parts) {
    (detail::append(text, parts), ...);
    return *this;
  }

  /// In quotes, with everything escaped that could end a name or a line: no two names look alike.
  Lines &addQuoted(std::string_view name) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += '"';
    for (char letter : name) {
      auto code = static_cast<uint8_t>(letter);
      if (code < 0x20 || code == 0x7f || letter == '"' || letter == '\\')
        text += {'\\', digits[code >> 4], digits[code & 15]};
      else
        text += letter;
    }
    text += '"';
    return *this;
  }

  Lines &addQuoted(const std::vector<std::string> &names) {
    for (const std::string &name : names)
      add(" ").addQuoted(name);
    return *this;
  }

  Lines &addSize(int64_t size) { return add(size); }
  Lines &addSize(const Dim &dim) { return dim.isFixed() ? add(dim.size) : addQuoted(dim.symbol); }

  template <typename Size> Lines &addShape(const std::vector<Size> &shape) {
    for (size_t axis = 0; axis < shape.size(); ++axis)
      add(axis == 0 ? "[" : ", ").addSize(shape[axis]);
    return add(shape.empty() ? "[]" : "]");
  }

  Lines &addTensor(std::string_view role, const TensorInfo &info) {
    add(role, " ").addQuoted(info.name).add(": ", dtypeName(info.dtype), " ").addShape(info.shape);
    if (info.isContext)
      add(" context");
    if (info.rows != 0 || info.rowOffset != 0)
      add(" rows ", info.rows, " offset ", info.rowOffset);
    if (info.appendAxis)
      add(" grows ", *info.appendAxis);
    if (!info.beginning.empty())
      add(" begins ").addQuoted(info.beginning);
    if (info.layout != StateLayout::Rows || info.bits != 0)
      add(" layout ", layoutName(info.layout), " bits ", info.bits);
    return add("\n");
  }

  void addState(const StateInfo &state) {
    add("state ").addQuoted(state.name).add("\n");
    for (const TensorInfo &slot : state.slots)
      add("state ").addQuoted(state.name).addTensor(" slot", slot);
  }

  void addEntry(const EntryInfo &entry) {
    auto begin = [&]() -> Lines & { return add("entry ").addQuoted(entry.name); };
    begin().add("\n");
    for (const TensorInfo &input : entry.inputs)
      begin().addTensor(" input", input);
    for (const TensorInfo &output : entry.outputs)
      begin().addTensor(" output", output);
    if (!entry.state.empty())
      begin().add(" state ").addQuoted(entry.state).add(entry.hasOwnLengths ? " own lengths\n" : "\n");
    for (const LimitInfo &limit : entry.limits)
      begin()
          .add(" limit")
          .addQuoted(limit.sizes)
          .add(limit.countsHeld ? " and held" : "", ": most ", limit.most, " table ")
          .addQuoted(limit.table)
          .add("\n");
  }

  void reserve(size_t bytes) { text.reserve(bytes); }
  std::string take() { return std::move(text); }

private:
  std::string text;
};

/// The first line of `text`, which then begins with the next.
std::string_view nextLine(std::string_view &text) {
  size_t length = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

} // namespace

std::string signatureOf(const Manifest &manifest) {
  Lines lines;
  lines.add("target ").addQuoted(manifest.target).add("\ncpu").addQuoted(manifest.cpuFeatures);
  lines.add("\nranks ", manifest.ranks, "\n");
  if (const std::optional<DeviceInfo> &device = manifest.device) {
    lines.add("device ").addQuoted(device->chip).add(" services ", device->services, " kernels");
    lines.addQuoted(device->kernels).add("\n");
  }
  for (const StateInfo &state : manifest.states)
    lines.addState(state);
  for (const EntryInfo &entry : manifest.entries)
    lines.addEntry(entry);
  return lines.add("end of entries\n").take();
}

std::string signatureOf(std::span<const StoredTensor> tensors) {
  constexpr size_t usual = 96; // bytes of a line
  Lines lines;
  lines.reserve(tensors.size() * usual);
  for (const StoredTensor &tensor : tensors)
    lines.add("weight ")
        .addQuoted(tensor.name)
        .add(": ", storedTypeName(tensor.dtype), " ")
        .addShape(tensor.shape)
        .add(" at ", tensor.offset, "\n");
  return lines.add("end of weights\n").take();
}

absl::Status takeSignature(std::string_view &compiled, std::string_view found, const std::string &file) {
  if (compiled.starts_with(found)) {
    compiled.remove_prefix(found.size());
    return absl::OkStatus();
  }
  while (!found.empty()) {
    std::string_view wanted = nextLine(compiled), line = nextLine(found);
    if (line != wanted)
      return invalid(file, ": expected '", wanted, "', for which program.so was compiled, but got '", line,
                     "'; the artefact is damaged or mixed from two");
  }
  return absl::OkStatus();
}

} // namespace hone::io
