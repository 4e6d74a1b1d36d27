// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pieces of a call, and their sums as a table.

#include "cli/profile.h"

#include "hone/io/printable.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace hone::cli {
namespace {

struct Sum {
  int64_t count = 0, nanoseconds = 0, weightBytes = 0;

  void add(const rt::ProfiledSpan &span, int64_t bytes) {
    ++count;
    nanoseconds += span.end - span.begin;
    weightBytes += bytes;
  }
};

/// Calls of one entry with one set of input shapes.
struct Section {
  Sum calls;
  std::map<std::string, Sum> rows;
};

int64_t bytesOf(const rt::ProfiledOperand &operand) {
  return io::tensorBytes(operand.dtype, operand.shape).value_or(0);
}

/// The kernel and the shapes of its weights, which do not change from call to call.
std::string rowName(const ProfilePiece &piece) {
  if (!piece.kernel)
    return piece.next ? io::cat("(generated code before ", piece.next, ")") : "(generated code at the end)";
  std::string name = piece.kernel->name;
  for (const rt::ProfiledOperand &operand : piece.kernel->operands)
    if (operand.weightOffset && operand.shape.size() > 1)
      name += io::cat(" ", io::shapeText(operand.shape));
  return name;
}

void add(const rt::ProfiledCall &call, Section &section) {
  section.calls.add(call, 0);
  for (const ProfilePiece &piece : piecesOf(call)) {
    int64_t bytes = 0;
    if (piece.kernel)
      for (const rt::ProfiledOperand &operand : piece.kernel->operands)
        bytes += operand.weightOffset ? bytesOf(operand) : 0;
    section.rows[rowName(piece)].add(piece, bytes);
  }
}

std::string line(const char *format, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string sectionText(const std::string &title, const Section &section) {
  auto calls = static_cast<double>(section.calls.count), total = static_cast<double>(section.calls.nanoseconds);
  std::string text = io::printable(title) + line(": %lld calls, %.3f ms a call\n",
                                                 static_cast<long long>(section.calls.count), total / calls * 1e-6);
  text += "   share   ms/call  times/call  weights GB/s\n";
  std::vector<std::pair<std::string, Sum>> rows(section.rows.begin(), section.rows.end());
  std::ranges::sort(rows, {}, [](const auto &row) { return std::pair(-row.second.nanoseconds, row.first); });
  for (const auto &[name, sum] : rows) {
    auto time = static_cast<double>(sum.nanoseconds);
    std::string rate = sum.weightBytes ? line("%.1f", static_cast<double>(sum.weightBytes) / std::max(time, 1.0)) : "-";
    text += line("  %5.1f%%  %8.3f  %10.1f  %12s  ", 100 * time / std::max(total, 1.0), time / calls * 1e-6,
                 static_cast<double>(sum.count) / calls, rate.c_str()) +
            io::printable(name) + "\n";
  }
  return text;
}

} // namespace

std::vector<ProfilePiece> piecesOf(const rt::ProfiledCall &call) {
  std::vector<const rt::ProfiledKernel *> kernels;
  for (const rt::ProfiledKernel &kernel : call.kernels)
    kernels.push_back(&kernel);
  std::ranges::sort(kernels, {}, [](const rt::ProfiledKernel *kernel) { return std::pair(kernel->begin, kernel); });
  std::vector<ProfilePiece> pieces;
  int64_t end = call.begin; // of what came before, in the call's own thread
  for (const rt::ProfiledKernel *kernel : kernels) {
    bool own = kernel->thread == call.thread;
    if (own && kernel->begin > end)
      pieces.push_back({{end, kernel->begin}, nullptr, kernel->name});
    pieces.push_back({*kernel, kernel, nullptr});
    end = own ? kernel->end : end;
  }
  if (call.end > end)
    pieces.push_back({{end, call.end}, nullptr, nullptr});
  return pieces;
}

std::string inputsText(const rt::ProfiledCall &call) {
  std::string text;
  for (const std::vector<int64_t> &shape : call.inputShapes)
    text += (text.empty() ? "" : ", ") + io::shapeText(shape);
  return text;
}

std::string profileTable(const rt::Profile &profile) {
  std::map<std::string, Section> sections;
  for (const rt::ProfiledCall &call : profile.calls())
    add(call, sections[io::cat(call.entry, " ", inputsText(call))]);
  std::string text;
  for (const auto &[title, section] : sections)
    text += sectionText(title, section);
  return text;
}

absl::Status Profiler::open(std::span<const std::string> targets, const io::InputFiles &inputs) {
  for (const std::string &target : targets) {
    if (target == "-") {
      printsTable = true;
      continue;
    }
    HONE_RETURN_IF_ERROR(inputs.checkOutput(target));
    HONE_ASSIGN_OR_RETURN(io::FileWriter file, io::FileWriter::create(target));
    files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status Profiler::write(const rt::Module &module) {
  if (printsTable)
    std::fputs(profileTable(profile).c_str(), stderr);
  for (io::FileWriter &file : files)
    HONE_RETURN_IF_ERROR(writeTrace(profile, module, file));
  return absl::OkStatus();
}

} // namespace hone::cli
