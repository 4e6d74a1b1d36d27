// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `inspect`: what an artefact holds. It reads the manifest and the weights' header only, so that an artefact for another
// CPU can be looked at too.

#include "cli/commands.h"

#include "hone/io/descriptors.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace hone::cli {
namespace {

constexpr const char *kHelp = R"(usage: {program} inspect MODEL.hone [OPTIONS]

Prints what an artefact was made from and for, its entries with their inputs, outputs and state, the kernels it calls, and
how many bytes its weights take by type.

options
  --weights           also list every weight: name, type, shape, bytes
)";

/// Titles are padded to one width.
constexpr size_t kTitleWidth = 7;

struct InspectOptions {
  bool weights = false;
};

OptionParser parserFor(InspectOptions &options) {
  OptionParser parser;
  parser.flag("weights", options.weights);
  return parser;
}

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "(none)" : text;
}

void printTensors(const char *title, std::span<const io::TensorInfo> tensors) {
  for (const io::TensorInfo &tensor : tensors) {
    std::string growth = tensor.appendAxis ? io::cat(", grows along axis ", *tensor.appendAxis) : "";
    if (std::string_view layout = io::layoutName(tensor.layout); !layout.empty())
      growth += io::cat(", in ", layout, tensor.bits != 0 ? io::cat(" of ", tensor.bits, " bits") : "");
    std::string kind = tensor.isContext ? "context" : title;
    kind.resize(kTitleWidth, ' ');
    printLine("  ", kind, " ", tensor.name, ": ", io::dtypeName(tensor.dtype), " ", io::shapeText(tensor.shape),
              growth);
  }
}

void printLimits(const io::EntryInfo &entry) {
  for (const io::LimitInfo &limit : entry.limits) {
    std::string sum = limit.countsHeld ? "positions of a session" : "";
    for (size_t i = 0; !limit.countsHeld && i < limit.sizes.size(); ++i)
      sum += (i == 0 ? "" : " + ") + limit.sizes[i];
    printLine("  limit   ", sum, ": at most ", limit.most, ", by the rows of '", limit.table, "'");
  }
}

void printManifest(const io::Manifest &manifest) {
  printLine("source: ", manifest.sourceName);
  printLine("built by: hone ", manifest.honeVersion, " for ", manifest.target, ", ", manifest.cpuName, " (",
            joined(manifest.cpuFeatures), ")");
  if (const std::optional<io::DeviceInfo> &device = manifest.device)
    printLine("device: ", device->chip, ", ", device->kernels.size(), " generated kernels");
  if (manifest.ranks > 1)
    printLine("ranks: ", manifest.ranks, manifest.device ? ", each on a GPU of its own" : "",
              "; weights are those of rank 0");
  printLine("tokenizer: ", manifest.tokenizer.empty() ? "(none)" : manifest.tokenizer);
  for (const io::EntryInfo &entry : manifest.entries) {
    printLine("entry ", entry.name);
    printTensors("input", entry.inputs);
    printTensors("output", entry.outputs);
    printTensors("state", manifest.slotsOf(entry));
    printLimits(entry);
  }
  printLine("kernels: ", joined(manifest.kernels));
  bool hasLayers = std::ranges::any_of(manifest.kernels, [](const std::string &name) {
    return name.starts_with("cuda.linear.") || name.starts_with("cuda.gated_linear.") ||
           name.starts_with("cuda.sibling_linear.");
  });
  if (hasLayers)
    printLine("library: cublasLtMatmul for large-M layers (GEMM), where the loader finds cuBLASLt");
}

void printWeights(const io::SafetensorsReader &weights, bool each) {
  std::map<std::string, std::pair<int64_t, uint64_t>> byType; // tensors, bytes
  for (const io::StoredTensor &tensor : weights.tensors()) {
    auto &[count, bytes] = byType[std::string(io::dtypeName(tensor.dtype))];
    ++count;
    bytes += tensor.bytes;
    if (each)
      printLine("  weight  ", tensor.name, ": ", io::dtypeName(tensor.dtype), " ", io::shapeText(tensor.shape), ", ",
                tensor.bytes, " bytes");
  }
  for (const auto &[type, sum] : byType)
    printLine("weights ", type, ": ", sum.first, " tensors, ", sum.second, " bytes");
}

absl::Status runInspect(std::span<const std::string> arguments) {
  InspectOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  std::filesystem::path folder = path;
  HONE_ASSIGN_OR_RETURN(io::Manifest manifest, io::readManifest((folder / "manifest.json").string()));
  std::string file = (folder / io::weightsFile(manifest.ranks, 0)).string();
  HONE_RETURN_IF_ERROR(io::checkNoLink(file));
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader weights, io::SafetensorsReader::open(file));
  printManifest(manifest);
  printWeights(weights, options.weights);
  return absl::OkStatus();
}

} // namespace

extern const Command kInspectCommand = {"inspect", "what is in an artefact", kHelp, runInspect, [] {
                                          InspectOptions options;
                                          return parserFor(options).names();
                                        }};

} // namespace hone::cli
