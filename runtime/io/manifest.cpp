// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// manifest.json to structs.

#include "hone/io/manifest.h"

#include "hone/io/descriptors.h"
#include "hone/io/file.h"
#include "json.h"

#include <algorithm>

namespace hone::io {
namespace {

constexpr int64_t kMostRows = int64_t(1) << 60;
constexpr int64_t kMostRetained = int64_t(1) << 26;        // so that sums of them do not overflow
constexpr uint64_t kMostManifestBytes = uint64_t(4) << 20; // of models with a thousand layers it has a tenth of that

struct LayoutName {
  std::string_view word;
  StateLayout layout;
};

constexpr LayoutName kLayoutNames[] = {{"key_blocks", StateLayout::KeyBlocks},
                                       {"value_blocks", StateLayout::ValueBlocks}};

/// Reads one manifest; the first complaint wins, and later reads are harmless.
class ManifestParser {
public:
  ManifestParser(const ParsedJson &document, const std::string &name) : document(document), name(name) {}

  absl::StatusOr<Manifest> parse() {
    HONE_RETURN_IF_ERROR(checkVersion());
    manifest.honeVersion = text(document, "hone", "manifest");
    manifest.target = text(document, "target", "manifest");
    if (member(document, "sanitizer"))
      manifest.sanitizer = text(document, "sanitizer", "manifest");
    parseCpu();
    parseDevice();
    parseRanks();
    parseFiles();
    parseStates();
    for (const ParsedJson &entry : list(document, "entries", "manifest"))
      manifest.entries.push_back(parseEntry(entry));
    manifest.kernels = strings(document, "kernels", "manifest");
    if (member(document, "gathered"))
      manifest.gatheredWeights = strings(document, "gathered", "manifest");
    if (const ParsedJson *source = member(document, "source"))
      manifest.sourceName = text(*source, "name", "source");
    if (const ParsedJson *tokenizer = member(document, "tokenizer"); tokenizer && !tokenizer->is_null())
      manifest.tokenizer = fileName(document, "tokenizer", "manifest");
    parseGeneration();
    parseEmbedding();
    parseFeatures();
    if (!status.ok())
      return status;
    return manifest;
  }

private:
  absl::Status checkVersion() {
    if (asString(member(document, "schema")) != kManifestSchema)
      return invalid(name, ": expected schema to be '", kManifestSchema,
                     "'; is this the manifest of a .hone artefact?");
    std::optional<int64_t> version = asInteger(member(document, "version"));
    if (version != kManifestVersion)
      return invalid(name, ": unsupported artefact version ", version ? cat(*version) : "(none)",
                     "; supported: ", kManifestVersion);
    return absl::OkStatus();
  }

  void parseCpu() {
    const ParsedJson *cpu = member(document, "cpu");
    if (!cpu)
      return;
    manifest.cpuName = text(*cpu, "name", "cpu");
    manifest.cpuFeatures = strings(*cpu, "features", "cpu");
  }

  void parseDevice() {
    const ParsedJson *device = member(document, "device");
    if (!device)
      return;
    DeviceInfo &info = manifest.device.emplace();
    info.chip = text(*device, "chip", "device");
    info.file = fileName(*device, "file", "device");
    info.kernels = strings(*device, "kernels", "device");
    std::optional<int64_t> services = asInteger(member(*device, "services"));
    if (!services)
      complain("device.services", "a version");
    info.services = services.value_or(0);
  }

  void parseRanks() {
    const ParsedJson *ranks = member(document, "ranks");
    if (!ranks)
      return;
    std::optional<int64_t> count = asInteger(ranks);
    if (!count || *count < 1 || *count > kMostRanks)
      return complain("ranks", cat("a number of processes, 1 to ", kMostRanks));
    manifest.ranks = *count;
  }

  void parseFiles() {
    const ParsedJson *files = member(document, "files");
    if (!files || !files->is_object())
      return complain("files", "an object");
    for (const auto &[file, entry] : files->items()) {
      if (!isFileName(file))
        return complain(cat("a name in files, '", file, "',"), "that of a file in the folder");
      std::optional<int64_t> bytes = asInteger(member(entry, "bytes"));
      if (!bytes || *bytes < 0)
        return complain(cat("files.", file, ".bytes"), "a size");
      manifest.fileBytes[file] = static_cast<uint64_t>(*bytes);
      const ParsedJson *crc = member(entry, "crc32");
      std::optional<int64_t> sum = asInteger(crc);
      if (crc && (!sum || *sum < 0 || *sum > UINT32_MAX))
        return complain(cat("files.", file, ".crc32"), "a sum of 32 bits");
      if (crc)
        manifest.fileChecksums[file] = static_cast<uint32_t>(*sum);
    }
  }

  void parseStates() {
    if (!member(document, "states"))
      return;
    for (const ParsedJson &state : list(document, "states", "manifest")) {
      StateInfo info;
      info.name = text(state, "name", "a state");
      if (info.name.empty() || manifest.state(info.name))
        complain("the name of a state", cat("that of no other, but got '", info.name, "'"));
      for (const ParsedJson &slot : list(state, "slots", info.name))
        info.slots.push_back(parseSlot(slot, info.name));
      if (const ParsedJson *retention = member(state, "retention"))
        parseRetention(*retention, info);
      manifest.states.push_back(std::move(info));
    }
  }

  void parseRetention(const ParsedJson &retention, StateInfo &state) {
    std::string where = cat(state.name, ".retention");
    auto number = [&](const ParsedJson &object, const char *key, int64_t least, int64_t most = kMostRetained) {
      std::optional<int64_t> value = asInteger(member(object, key));
      bool isRight = value && *value >= least && *value <= most;
      if (!isRight)
        complain(cat(where, ".", key), cat("a whole number from ", least, " to ", most));
      return isRight ? *value : least;
    };
    auto slot = [&](const ParsedJson &object, const char *key) {
      int64_t place = number(object, key, 0, std::ssize(state.slots) - 1);
      if (place >= std::ssize(state.slots) || state.slots[place].appendAxis != 2 ||
          state.slots[place].shape.size() != 4)
        complain(cat(where, ".", key), "a slot of four dimensions that grows along axis 2");
      return place;
    };
    bool accumulates = flag(retention, "accumulates", where), sharesHeads = flag(retention, "shares_heads", where);
    RetentionInfo info = {number(retention, "block", 1), number(retention, "pooling", 1), accumulates, sharesHeads, {}};
    for (const ParsedJson &layer : list(retention, "layers", where)) {
      LayerRetention &own = info.layers.emplace_back();
      own = {slot(layer, "keys"),        slot(layer, "values"),     std::nullopt,
             number(layer, "budget", 1), number(layer, "sinks", 0), number(layer, "recent", 1)};
      if (member(layer, "queries"))
        own.queries = slot(layer, "queries");
      if (own.budget < own.sinks + own.recent + info.block)
        complain(cat(where, ".budget"), "at least the sum of sinks, recent and block");
    }
    state.retention = std::move(info);
  }

  EntryInfo parseEntry(const ParsedJson &entry) {
    EntryInfo info;
    info.name = text(entry, "name", "an entry");
    for (const ParsedJson &input : list(entry, "inputs", info.name)) {
      info.inputs.push_back(parseTensor(input, info.name));
      info.inputs.back().isContext = flag(input, "context", cat(info.name, ".", info.inputs.back().name));
      parseRows(input, info.name, info.inputs.back());
    }
    for (const ParsedJson &output : list(entry, "outputs", info.name))
      info.outputs.push_back(parseTensor(output, info.name));
    if (member(entry, "state")) {
      info.state = text(entry, "state", info.name);
      if (!manifest.state(info.state))
        complain(cat(info.name, ".state"), cat("the name of a state, but got '", info.state, "'"));
    }
    if (member(entry, "limits"))
      for (const ParsedJson &limit : list(entry, "limits", info.name))
        parseLimit(limit, info);
    if (const ParsedJson *lengths = member(entry, "own_lengths")) {
      if (!lengths->is_boolean() || info.state.empty())
        complain(cat(info.name, ".own_lengths"), "true or false, of an entry with a state");
      info.hasOwnLengths = lengths->is_boolean() && lengths->get<bool>();
    }
    return info;
  }

  TensorInfo parseTensor(const ParsedJson &tensor, const std::string &entry) {
    TensorInfo info;
    info.name = text(tensor, "name", entry);
    std::string where = cat(entry, ".", info.name);
    std::string word = text(tensor, "dtype", where);
    std::optional<hone_dtype> dtype = dtypeFromName(word);
    if (!dtype)
      complain(cat(where, ".dtype"), "an element type");
    info.dtype = dtype.value_or(HONE_F32);
    for (const ParsedJson &dim : list(tensor, "shape", where))
      info.shape.push_back(parseDim(dim, where));
    if (info.shape.size() > HONE_MAX_RANK)
      complain(cat(where, ".shape"), cat("at most ", HONE_MAX_RANK, " sizes"));
    return info;
  }

  void parseRows(const ParsedJson &input, const std::string &entry, TensorInfo &info) {
    const ParsedJson *rows = member(input, "rows");
    if (!rows)
      return;
    info.rows = asInteger(rows).value_or(0);
    if (info.rows <= 0 || (info.dtype != HONE_I32 && info.dtype != HONE_I64))
      return complain(cat(entry, ".", info.name, ".rows"), "a number of rows, of an input of i32 or i64");
    const ParsedJson *offset = member(input, "row_offset");
    info.rowOffset = asInteger(offset).value_or(0);
    // So that no sum of a number of rows and an offset overflows.
    bool isBounded = info.rows <= kMostRows && -kMostRows <= info.rowOffset && info.rowOffset <= kMostRows;
    if ((offset && !asInteger(offset)) || !isBounded)
      complain(cat(entry, ".", info.name, ".row_offset"), cat("a number, and it and that of rows at most ", kMostRows));
  }

  void parseLimit(const ParsedJson &limit, EntryInfo &entry) {
    LimitInfo info;
    std::string where = cat(entry.name, ".limits");
    info.sizes = strings(limit, "sizes", where);
    info.table = text(limit, "table", where);
    const ParsedJson *held = member(limit, "held");
    info.countsHeld = held && held->is_boolean() && held->get<bool>();
    std::optional<int64_t> most = asInteger(member(limit, "most"));
    if (!most || *most < 0 || (held && !held->is_boolean()))
      complain(where, "a list of {sizes, held, most, table}");
    info.most = most.value_or(0);
    for (const std::string &size : info.sizes) {
      auto isSize = [&](const Dim &dim) { return !dim.isFixed() && dim.symbol == size; };
      auto hasSize = [&](const TensorInfo &input) { return std::ranges::any_of(input.shape, isSize); };
      if (size.empty() || std::ranges::none_of(entry.inputs, hasSize))
        complain(where, "of sizes of its inputs");
    }
    entry.limits.push_back(std::move(info));
  }

  TensorInfo parseSlot(const ParsedJson &slot, const std::string &state) {
    TensorInfo info = parseTensor(slot, state);
    const ParsedJson *axis = member(slot, "append_axis");
    if (const ParsedJson *beginning = member(slot, "beginning")) {
      info.beginning = asString(beginning).value_or("");
      bool isReplaced = !axis || axis->is_null();
      if (!isReplaced || info.beginning.empty() || !std::ranges::all_of(info.shape, &Dim::isFixed))
        complain(cat(state, ".", info.name, ".beginning"), "a tensor, of a slot of fixed sizes that does not grow");
    }
    if (!axis || axis->is_null())
      return info;
    info.appendAxis = asInteger(axis);
    if (!info.appendAxis || *info.appendAxis < 0 || *info.appendAxis >= static_cast<int64_t>(info.shape.size())) {
      complain(cat(state, ".", info.name, ".append_axis"), "an axis of its shape, or null");
      info.appendAxis.reset();
    }
    parseLayout(slot, cat(state, ".", info.name), info);
    return info;
  }

  void parseLayout(const ParsedJson &slot, const std::string &where, TensorInfo &info) {
    const ParsedJson *layout = member(slot, "layout"), *bits = member(slot, "bits");
    if (!layout && bits)
      complain(cat(where, ".bits"), "those of a slot in blocks");
    if (!layout)
      return;
    std::optional<std::string> word = asString(layout);
    std::optional<StateLayout> known = layoutFromName(word.value_or(""));
    bool isCache = info.shape.size() == 4 && info.appendAxis == 2 &&
                   (info.dtype == HONE_F32 || info.dtype == HONE_F16 || info.dtype == HONE_BF16);
    if (!known || !isCache)
      return complain(cat(where, ".layout"),
                      "'key_blocks' or 'value_blocks' of a slot of floats that grows along axis 2 of 4");
    info.layout = *known;
    if (!bits)
      return;
    info.bits = asInteger(bits).value_or(-1);
    if (info.dtype != HONE_F32 || (info.bits != 4 && info.bits != 8)) {
      complain(cat(where, ".bits"), "4 or 8 of a slot of f32");
      info.bits = 0;
    }
  }

  Dim parseDim(const ParsedJson &dim, const std::string &where) {
    if (std::optional<std::string> symbol = asString(&dim))
      return Dim::symbolic(*symbol);
    std::optional<int64_t> size = asInteger(&dim);
    if (!size || *size < 0)
      complain(cat(where, ".shape"), "sizes and symbols");
    return Dim::fixed(size && *size >= 0 ? *size : 0);
  }

  void parseEmbedding() {
    const ParsedJson *embedding = member(document, "embedding");
    if (!embedding)
      return;
    manifest.mostEmbeddedTokens = asInteger(member(*embedding, "most_tokens"));
    if (!manifest.mostEmbeddedTokens || *manifest.mostEmbeddedTokens < 1)
      complain("embedding.most_tokens", "a number of tokens");
  }

  /// After the entries, of which one reads them.
  void parseFeatures() {
    const ParsedJson *features = member(document, "features");
    if (!features)
      return;
    FeatureInfo info = {text(*features, "input", "features"), asInteger(member(*features, "token")).value_or(-1)};
    if (info.token < 0)
      complain("features.token", "a token id");
    auto isRead = [&](const TensorInfo &input) {
      return input.isContext && input.name == info.input && input.shape.size() == 2 && input.shape[1].isFixed();
    };
    if (std::ranges::none_of(manifest.entries,
                             [&](const EntryInfo &entry) { return std::ranges::any_of(entry.inputs, isRead); }))
      complain("features.input", "context of an entry, of two dimensions of which the second is fixed");
    manifest.features = std::move(info);
  }

  void parseGeneration() {
    const ParsedJson *generation = member(document, "generation");
    if (!generation || generation->is_null())
      return;
    GenerationInfo &info = manifest.generation;
    info.beginToken = token(*generation, "bos");
    info.endTokens = tokens(list(*generation, "eos", "generation"), "generation.eos");
    if (member(*generation, "start"))
      for (const ParsedJson &choice : list(*generation, "start", "generation"))
        if (info.startTokens.push_back(tokens(choice, "generation.start")); info.startTokens.back().empty())
          complain("generation.start", "lists of at least one token id");
    for (auto [key, ids] :
         {std::pair("suppress", &info.rules.never), std::pair("suppress_first", &info.rules.notFirst)})
      if (const ParsedJson *given = member(*generation, key))
        *ids = tokens(*given, cat("generation.", key));
    info.rules.last = token(*generation, "last");
  }

  std::optional<int64_t> token(const ParsedJson &generation, const char *key) {
    const ParsedJson *value = member(generation, key);
    if (!value || value->is_null())
      return std::nullopt;
    if (!asInteger(value))
      complain(cat("generation.", key), "a token id");
    return asInteger(value);
  }

  std::vector<int64_t> tokens(const ParsedJson &ids, std::string_view where) {
    std::vector<int64_t> found;
    if (!ids.is_array())
      complain(where, "a list of token ids");
    else
      for (const ParsedJson &id : ids) {
        if (!asInteger(&id))
          complain(where, "token ids");
        found.push_back(asInteger(&id).value_or(0));
      }
    return found;
  }

  /// False where it is left out.
  bool flag(const ParsedJson &object, const char *key, std::string_view where) {
    const ParsedJson *value = member(object, key);
    if (value && !value->is_boolean())
      complain(cat(where, ".", key), "true or false");
    return value && value->is_boolean() && value->get<bool>();
  }

  std::string text(const ParsedJson &object, const char *key, std::string_view where) {
    std::optional<std::string> value = asString(member(object, key));
    if (!value)
      complain(cat(where, ".", key), "a string");
    return value.value_or("");
  }

  /// The name of a file of the artefact, which is nowhere else.
  std::string fileName(const ParsedJson &object, const char *key, std::string_view where) {
    std::string name = text(object, key, where);
    if (!isFileName(name))
      complain(cat(where, ".", key), cat("the name of a file in the folder, but got '", name, "'"));
    return name;
  }

  static bool isFileName(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
  }

  const ParsedJson &list(const ParsedJson &object, const char *key, std::string_view where) {
    static const ParsedJson empty = ParsedJson::array();
    const ParsedJson *value = member(object, key);
    if (value && value->is_array())
      return *value;
    complain(cat(where, ".", key), "a list");
    return empty;
  }

  std::vector<std::string> strings(const ParsedJson &object, const char *key, std::string_view where) {
    std::vector<std::string> values;
    for (const ParsedJson &element : list(object, key, where)) {
      if (!element.is_string())
        complain(cat(where, ".", key), "a list of strings");
      values.push_back(asString(&element).value_or(""));
    }
    return values;
  }

  void complain(std::string_view what, std::string_view expected) {
    if (status.ok())
      status = invalid(name, ": expected ", what, " to be ", expected);
  }

  const ParsedJson &document;
  const std::string &name;
  Manifest manifest;
  absl::Status status;
};

} // namespace

std::string_view layoutName(StateLayout layout) {
  auto known = std::ranges::find(kLayoutNames, layout, &LayoutName::layout);
  return known == std::end(kLayoutNames) ? "" : known->word;
}

std::optional<StateLayout> layoutFromName(std::string_view name) {
  auto known = std::ranges::find(kLayoutNames, name, &LayoutName::word);
  return known == std::end(kLayoutNames) ? std::nullopt : std::optional(known->layout);
}

std::string shapeText(const std::vector<Dim> &shape) {
  std::string text = "[";
  for (const Dim &dim : shape) {
    if (text.size() > 1)
      text += ", ";
    text += dim.isFixed() ? cat(dim.size) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text + "]";
}

const EntryInfo *Manifest::entry(std::string_view name) const {
  auto found = std::ranges::find(entries, name, &EntryInfo::name);
  return found == entries.end() ? nullptr : &*found;
}

const StateInfo *Manifest::state(std::string_view name) const {
  auto found = std::ranges::find(states, name, &StateInfo::name);
  return found == states.end() ? nullptr : &*found;
}

std::span<const TensorInfo> Manifest::slotsOf(const EntryInfo &entry) const {
  const StateInfo *info = state(entry.state);
  return info ? std::span<const TensorInfo>(info->slots) : std::span<const TensorInfo>();
}

std::string weightsFile(int64_t ranks, int64_t rank) {
  return ranks == 1 ? "weights.safetensors" : cat("weights.rank", rank, ".safetensors");
}

absl::StatusOr<Manifest> parseManifest(std::string_view text, const std::string &name) {
  HONE_ASSIGN_OR_RETURN(JsonDocument document, parseJson(text, name));
  return ManifestParser(*document, name).parse();
}

/// Maps a manifest, whose size is checked before it is read.
static absl::StatusOr<MappedFile> openManifest(const std::string &path) {
  HONE_RETURN_IF_ERROR(checkNoLink(path));
  HONE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (file.size() > kMostManifestBytes)
    return invalid(path, ": expected a manifest of at most ", kMostManifestBytes, " bytes, but got ", file.size());
  return file;
}

absl::StatusOr<Manifest> readManifest(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(MappedFile file, openManifest(path));
  return parseManifest(file.text(), path);
}

absl::StatusOr<std::set<std::string>> listFiles(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(MappedFile file, openManifest(path));
  HONE_ASSIGN_OR_RETURN(JsonDocument document, parseJson(file.text(), path));
  const ParsedJson *files = member(*document, "files");
  if (asString(member(*document, "schema")) != kManifestSchema || !files || !files->is_object())
    return invalid(path, ": expected the manifest of a .hone artefact");
  std::set<std::string> names;
  for (const auto &[name, entry] : files->items())
    names.insert(name);
  return names;
}

} // namespace hone::io
