// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls with tensors, one or a file of cases.

#include "cli/call.h"

#include "cli/commands.h"
#include "core/communicator.h"
#include "hone/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace hone::cli {
namespace {

using io::cat;
using io::invalid;

/// What is called, and how results are judged.
class Caller {
public:
  Caller(const rt::Module &module, const io::EntryInfo &entry, const CallOptions &options)
      : module(module), entry(entry), options(options) {}

  absl::StatusOr<NamedArrays> call(const NamedArrays &inputs) const {
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> results,
                          module.call(entry.name, viewsOf(inputs), static_cast<int>(options.threads)));
    NamedArrays outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs.emplace(entry.outputs[i].name, std::move(results[i]));
    return outputs;
  }

  absl::StatusOr<NamedArrays> readExpected(const io::NpzReader &file, const std::string &prefix,
                                           const std::string &label) const {
    HONE_ASSIGN_OR_RETURN(NamedArrays expected, readArrays(file, prefix, [&](std::string_view name) {
                            if (std::ranges::find(entry.outputs, name, &io::TensorInfo::name) != entry.outputs.end())
                              return absl::OkStatus();
                            return invalid(label, "the entry has no output '", name, "', which is expected");
                          }));
    adoptTypes(expected, entry.outputs);
    return expected;
  }

  /// Prints a line an output; fails with the first that differs.
  absl::Status check(const NamedArrays &outputs, const NamedArrays &expected, const std::string &label) const {
    absl::Status status;
    for (const auto &[name, reference] : expected) {
      const io::Array &output = outputs.at(name);
      HONE_ASSIGN_OR_RETURN(Comparison result, compare(name, output, reference, options.tolerance));
      std::string line = describe(output.shape(), result);
      printLine(label, name, ": ", line);
      if (!result.equal && status.ok())
        status = invalid(label, "output '", name, "' differs: ", line);
    }
    return status;
  }

private:
  std::string describe(std::span<const int64_t> shape, const Comparison &result) const {
    if (result.worst < 0)
      return "ok, no elements";
    double difference = result.actual == result.expected ? 0 : std::abs(result.actual - result.expected);
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s, worst |difference| %.3g at %s: got %.9g, expected %.9g (allowed %g + %g * |expected|)",
                  result.equal ? "ok" : "too far", difference, indexText(shape, result.worst).c_str(), result.actual,
                  result.expected, options.tolerance.absolute, options.tolerance.relative);
    return text;
  }

  const rt::Module &module;
  const io::EntryInfo &entry;
  const CallOptions &options;
};

void printShapes(const io::EntryInfo &entry, const NamedArrays &outputs) {
  for (const io::TensorInfo &info : entry.outputs)
    printLine(info.name, ": ", io::dtypeName(info.dtype), " ", io::shapeText(outputs.at(info.name).shape()));
}

absl::Status writeArrays(const std::string &path, const io::EntryInfo &entry, const NamedArrays &arrays) {
  HONE_ASSIGN_OR_RETURN(io::NpzWriter writer, io::NpzWriter::create(path));
  std::set<std::string> taken;
  for (const io::TensorInfo &info : entry.outputs) {
    std::string name = memberName(info.name, taken);
    if (name != info.name)
      std::fprintf(stderr, "note: %s: output '%s' is called '%s' in the archive\n", path.c_str(), info.name.c_str(),
                   name.c_str());
    HONE_RETURN_IF_ERROR(writer.add(name, arrays.at(info.name)));
  }
  return writer.commit();
}

absl::Status callOnce(const Caller &caller, const io::EntryInfo &entry, const CallOptions &options) {
  NamedArrays inputs;
  if (options.inputs) {
    HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(*options.inputs));
    HONE_ASSIGN_OR_RETURN(inputs, readInputs(file, "", entry));
  }
  HONE_ASSIGN_OR_RETURN(NamedArrays outputs, caller.call(inputs));
  if (options.outputs && rt::isFirstRank())
    HONE_RETURN_IF_ERROR(writeArrays(*options.outputs, entry, outputs));
  if (options.expect) {
    HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(*options.expect));
    HONE_ASSIGN_OR_RETURN(NamedArrays expected, caller.readExpected(file, "", ""));
    return caller.check(outputs, expected, "");
  }
  if (!options.outputs)
    printShapes(entry, outputs);
  return absl::OkStatus();
}

/// The parts of names before the first slash, in the file's order: "case0", "case1", …
std::vector<std::string> caseNames(const io::NpzReader &file) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string &name : file.names())
    if (size_t slash = name.find('/'); slash != std::string::npos && seen.insert(name.substr(0, slash)).second)
      names.push_back(name.substr(0, slash));
  return names;
}

/// Runs `<case>/in/*` against `<case>/out/*`. True where the case has outputs.
absl::StatusOr<bool> runCase(const Caller &caller, const io::EntryInfo &entry, const io::NpzReader &file,
                             const std::string &name) {
  HONE_ASSIGN_OR_RETURN(NamedArrays inputs, readInputs(file, name + "/in/", entry));
  HONE_ASSIGN_OR_RETURN(NamedArrays expected, caller.readExpected(file, name + "/out/", name + ": "));
  if (expected.empty())
    return false;
  HONE_ASSIGN_OR_RETURN(NamedArrays outputs, caller.call(inputs));
  HONE_RETURN_IF_ERROR(caller.check(outputs, expected, name + ": "));
  return true;
}

absl::Status callCases(const Caller &caller, const io::EntryInfo &entry, const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(path));
  std::vector<std::string> names = caseNames(file), failures;
  Progress progress("running cases", static_cast<int64_t>(names.size()));
  int64_t compared = 0;
  absl::Status first;
  for (const std::string &name : names) {
    absl::StatusOr<bool> ran = runCase(caller, entry, file, name);
    if (ran.status().code() == absl::StatusCode::kInternal)
      return ran.status();
    if (!ran.ok()) {
      printLine(name, ": failed: ", ran.status().message());
      failures.push_back(name);
    } else if (!*ran) {
      printLine(name, ": skipped, the file has no outputs for it");
    }
    compared += !ran.ok() || *ran;
    progress.update(compared);
  }
  if (compared == 0)
    return invalid(path, ": expected arrays named <case>/in/<input> and <case>/out/<output>, but found no case");
  if (!failures.empty())
    return invalid(failures.size(), " of ", compared, " cases failed, the first is ", failures[0]);
  printLine("all ", compared, " cases are as expected");
  return absl::OkStatus();
}

} // namespace

absl::Status callWithTensors(const rt::Module &module, const CallOptions &options) {
  std::string name = options.entry.value_or("main");
  const io::EntryInfo *entry = module.manifest().entry(name);
  if (!entry)
    return invalid(module.folder(), ": has no entry '", name, "'");
  Caller caller(module, *entry, options);
  return options.cases ? callCases(caller, *entry, *options.cases) : callOnce(caller, *entry, options);
}

} // namespace hone::cli
