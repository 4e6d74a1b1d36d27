// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signatures of programs as text.

#include "hone/io/signature.h"

#include "stored_types.h"

#include <algorithm>

namespace hone::io {
namespace {

/// In quotes, with everything escaped that could end a name or a line: no two names look alike.
std::string quoted(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (char letter : name) {
    auto code = static_cast<uint8_t>(letter);
    if (code < 0x20 || code == 0x7f || letter == '"' || letter == '\\')
      text += {'\\', digits[code >> 4], digits[code & 15]};
    else
      text += letter;
  }
  return text + "\"";
}

std::string quotedAll(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += cat(" ", quoted(name));
  return text;
}

std::string sizesOf(const std::vector<Dim> &shape) {
  std::string text = "[";
  for (const Dim &dim : shape)
    text += cat(text.size() > 1 ? ", " : "", dim.isFixed() ? cat(dim.size) : quoted(dim.symbol));
  return text + "]";
}

std::string tensorLine(std::string_view role, const TensorInfo &info) {
  std::string line = cat(role, " ", quoted(info.name), ": ", dtypeName(info.dtype), " ", sizesOf(info.shape));
  if (info.isContext)
    line += " context";
  if (info.rows != 0 || info.rowOffset != 0)
    line += cat(" rows ", info.rows, " offset ", info.rowOffset);
  if (info.appendAxis)
    line += cat(" grows ", *info.appendAxis);
  if (info.layout != StateLayout::Rows || info.bits != 0)
    line += cat(" layout ", layoutName(info.layout), " bits ", info.bits);
  return line;
}

std::string limitLine(const LimitInfo &limit) {
  return cat("limit", quotedAll(limit.sizes), limit.countsHeld ? " and held" : "", ": most ", limit.most, " table ",
             quoted(limit.table));
}

std::string entryLines(const EntryInfo &entry) {
  std::string head = cat("entry ", quoted(entry.name)), text = head + "\n";
  auto add = [&](const std::string &line) { text += cat(head, " ", line, "\n"); };
  for (const TensorInfo &input : entry.inputs)
    add(tensorLine("input", input));
  for (const TensorInfo &output : entry.outputs)
    add(tensorLine("output", output));
  for (const TensorInfo &slot : entry.state)
    add(tensorLine("state", slot));
  for (const LimitInfo &limit : entry.limits)
    add(limitLine(limit));
  return text;
}

/// The first line of `text`, which then begins with the next.
std::string_view nextLine(std::string_view &text) {
  size_t length = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

} // namespace

std::string signatureOf(const Manifest &manifest) {
  std::string text = cat("target ", quoted(manifest.target), "\ncpu", quotedAll(manifest.cpuFeatures), "\nranks ",
                         manifest.ranks, "\n");
  if (const std::optional<DeviceInfo> &device = manifest.device)
    text += cat("device ", quoted(device->chip), " services ", device->services, " kernels", quotedAll(device->kernels),
                "\n");
  for (const EntryInfo &entry : manifest.entries)
    text += entryLines(entry);
  return text + "end of entries\n";
}

std::string signatureOf(std::span<const StoredTensor> tensors) {
  std::string text;
  for (const StoredTensor &tensor : tensors)
    text += cat("weight ", quoted(tensor.name), ": ", storedTypeName(tensor.dtype), " ", shapeText(tensor.shape),
                " at ", tensor.offset, "\n");
  return text + "end of weights\n";
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
