// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structs to manifest.json.

#include "hone/io/manifest.h"

#include "json.h"

namespace hone::io {
namespace {

Json shapeJson(const std::vector<Dim> &shape) {
  Json list = Json::array();
  for (const Dim &dim : shape)
    list.push_back(dim.isFixed() ? Json(dim.size) : Json(dim.symbol));
  return list;
}

Json tensorsJson(const std::vector<TensorInfo> &tensors, bool state) {
  Json list = Json::array();
  for (const TensorInfo &tensor : tensors) {
    Json entry = {
        {"name", tensor.name}, {"dtype", std::string(dtypeName(tensor.dtype))}, {"shape", shapeJson(tensor.shape)}};
    if (state)
      entry["append_axis"] = tensor.appendAxis ? Json(*tensor.appendAxis) : Json(nullptr);
    if (!tensor.beginning.empty())
      entry["beginning"] = tensor.beginning;
    if (std::string_view layout = layoutName(tensor.layout); !layout.empty())
      entry["layout"] = std::string(layout);
    if (tensor.bits != 0)
      entry["bits"] = tensor.bits;
    if (tensor.isContext)
      entry["context"] = true;
    if (tensor.rows != 0)
      entry["rows"] = tensor.rows;
    if (tensor.rowOffset != 0)
      entry["row_offset"] = tensor.rowOffset;
    list.push_back(std::move(entry));
  }
  return list;
}

Json entryJson(const EntryInfo &entry) {
  Json json = {{"name", entry.name},
               {"inputs", tensorsJson(entry.inputs, false)},
               {"outputs", tensorsJson(entry.outputs, false)}};
  if (!entry.state.empty())
    json["state"] = entry.state;
  for (const LimitInfo &limit : entry.limits)
    json["limits"].push_back(
        {{"sizes", limit.sizes}, {"held", limit.countsHeld}, {"most", limit.most}, {"table", limit.table}});
  if (entry.hasOwnLengths)
    json["own_lengths"] = true;
  return json;
}

Json generationJson(const GenerationInfo &info) {
  Json json = {{"eos", info.endTokens}, {"bos", info.beginToken ? Json(*info.beginToken) : Json(nullptr)}};
  if (!info.startTokens.empty())
    json["start"] = info.startTokens;
  if (!info.rules.never.empty())
    json["suppress"] = info.rules.never;
  if (!info.rules.notFirst.empty())
    json["suppress_first"] = info.rules.notFirst;
  if (info.rules.last)
    json["last"] = *info.rules.last;
  return json;
}

Json retentionJson(const RetentionInfo &info) {
  Json json = {{"block", info.block},
               {"pooling", info.pooling},
               {"accumulates", info.accumulates},
               {"shares_heads", info.sharesHeads},
               {"layers", Json::array()}};
  for (const LayerRetention &layer : info.layers) {
    json["layers"].push_back({{"keys", layer.keys},
                              {"values", layer.values},
                              {"budget", layer.budget},
                              {"sinks", layer.sinks},
                              {"recent", layer.recent}});
    if (layer.queries)
      json["layers"].back()["queries"] = *layer.queries;
  }
  return json;
}

Json stateJson(const StateInfo &state) {
  Json json = {{"name", state.name}, {"slots", tensorsJson(state.slots, true)}};
  if (state.retention)
    json["retention"] = retentionJson(*state.retention);
  return json;
}

} // namespace

std::string manifestText(const Manifest &manifest) {
  Json document = {{"schema", std::string(kManifestSchema)},
                   {"version", kManifestVersion},
                   {"hone", manifest.honeVersion},
                   {"target", manifest.target},
                   {"cpu", {{"name", manifest.cpuName}, {"features", manifest.cpuFeatures}}}};
  if (!manifest.sanitizer.empty())
    document["sanitizer"] = manifest.sanitizer;
  if (const std::optional<DeviceInfo> &device = manifest.device)
    document["device"] = {
        {"chip", device->chip}, {"file", device->file}, {"kernels", device->kernels}, {"services", device->services}};
  if (manifest.ranks > 1)
    document["ranks"] = manifest.ranks;
  document["files"] = Json::object();
  for (const auto &[file, bytes] : manifest.fileBytes)
    document["files"][file]["bytes"] = bytes;
  for (const auto &[file, sum] : manifest.fileChecksums)
    document["files"][file]["crc32"] = sum;
  for (const StateInfo &state : manifest.states)
    document["states"].push_back(stateJson(state));
  document["entries"] = Json::array();
  for (const EntryInfo &entry : manifest.entries)
    document["entries"].push_back(entryJson(entry));
  document["kernels"] = manifest.kernels;
  if (!manifest.gatheredWeights.empty())
    document["gathered"] = manifest.gatheredWeights;
  document["source"]["name"] = manifest.sourceName;
  document["tokenizer"] = manifest.tokenizer.empty() ? Json(nullptr) : Json(manifest.tokenizer);
  if (!manifest.generation.isEmpty())
    document["generation"] = generationJson(manifest.generation);
  if (manifest.features)
    document["features"] = {{"input", manifest.features->input}, {"token", manifest.features->token}};
  if (manifest.mostEmbeddedTokens)
    document["embedding"]["most_tokens"] = *manifest.mostEmbeddedTokens;
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace hone::io
