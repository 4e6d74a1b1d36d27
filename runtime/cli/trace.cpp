// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile in Chrome's trace event format ("Trace Event Format", Google, 2016), which Perfetto reads too.

#include "cli/profile.h"

#include "io/json.h"

#include <algorithm>

namespace hone::cli {
namespace {

/// The tensor that begins at or before `offset` and reaches beyond it.
std::string_view weightAt(const io::SafetensorsReader &weights, uint64_t offset) {
  const auto &tensors = weights.tensors(); // in the order of their bytes
  auto after = std::ranges::upper_bound(tensors, offset, {}, &io::StoredTensor::offset);
  if (after == tensors.begin() || offset >= (after - 1)->offset + std::max<uint64_t>((after - 1)->bytes, 1))
    return "";
  return (after - 1)->name;
}

io::Json event(std::string name, const char *category, const rt::ProfiledSpan &span, int thread) {
  constexpr double nanosecondsPerMicrosecond = 1000;
  return {{"name", std::move(name)},
          {"cat", category},
          {"ph", "X"},
          {"ts", static_cast<double>(span.begin) / nanosecondsPerMicrosecond},
          {"dur", static_cast<double>(span.end - span.begin) / nanosecondsPerMicrosecond},
          {"pid", 1},
          {"tid", thread}};
}

/// "f32 [1, 896]", with the name of the weight where the operand is one.
std::string operandText(const rt::ProfiledOperand &operand, const io::SafetensorsReader &weights) {
  std::string text = io::cat(io::dtypeName(operand.dtype), " ", io::shapeText(operand.shape));
  return operand.weightOffset ? io::cat(text, " ", weightAt(weights, *operand.weightOffset)) : text;
}

io::Json pieceEvent(const ProfilePiece &piece, int thread, const io::SafetensorsReader &weights) {
  if (!piece.kernel) {
    io::Json json = event("generated code", "generated", piece, thread);
    json["args"]["before"] = piece.next ? piece.next : "the end";
    return json;
  }
  io::Json json = event(piece.kernel->name, "kernel", piece, piece.kernel->thread);
  json["args"]["operands"] = io::Json::array();
  for (const rt::ProfiledOperand &operand : piece.kernel->operands)
    json["args"]["operands"].push_back(operandText(operand, weights));
  return json;
}

/// Writes events one by one, so that a long trace is not held as a document.
class TraceWriter {
public:
  explicit TraceWriter(io::FileWriter &file) : file(file) {}

  absl::Status add(const io::Json &json) {
    absl::Status status =
        file.write(io::cat(first ? "" : ",\n", json.dump(-1, ' ', false, io::Json::error_handler_t::replace)));
    first = false;
    return status;
  }

private:
  io::FileWriter &file;
  bool first = true;
};

} // namespace

absl::Status writeTrace(const rt::Profile &profile, const rt::Module &module, io::FileWriter &file) {
  HONE_RETURN_IF_ERROR(file.write("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"));
  TraceWriter writer(file);
  for (const rt::ProfiledCall &call : profile.calls()) {
    io::Json json = event(call.entry, "entry", call, call.thread);
    json["args"]["inputs"] = inputsText(call);
    HONE_RETURN_IF_ERROR(writer.add(json));
    for (const ProfilePiece &piece : piecesOf(call))
      HONE_RETURN_IF_ERROR(writer.add(pieceEvent(piece, call.thread, module.weights())));
  }
  HONE_RETURN_IF_ERROR(file.write("\n]}\n"));
  return file.commit();
}

} // namespace hone::cli
