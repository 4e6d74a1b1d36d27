// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// manifest.json of an artefact, as structs: the compiler writes what the runtime reads. docs/artefact.md documents it.

#ifndef HONE_IO_MANIFEST_H
#define HONE_IO_MANIFEST_H

#include "hone/io/dtype.h"
#include "hone/io/features.h"
#include "hone/io/generation.h"
#include "hone/io/status.h"

#include <map>
#include <set>
#include <span>

namespace hone::io {

constexpr std::string_view kManifestSchema = "hone-artefact";
constexpr int64_t kManifestVersion = 3;

/// Most processes that run one artefact together.
constexpr int64_t kMostRanks = 4096;

/// A size that is known, or one that calls decide (`size` < 0), with the symbol the model gave it ("" = unnamed). Equal
/// symbols of one call are equal sizes.
struct Dim {
  int64_t size = -1;
  std::string symbol;

  bool isFixed() const { return size >= 0; }
  static Dim fixed(int64_t size) { return {size, ""}; }
  static Dim symbolic(std::string symbol) { return {-1, std::move(symbol)}; }
};

/// "[2, batch, ?]".
std::string shapeText(const std::vector<Dim> &shape);

/// How a slot keeps what is appended: as rows, or in blocks of positions (include/hone/cpu/packing/cache_blocks.h).
enum class StateLayout { Rows, KeyBlocks, ValueBlocks };

/// "key_blocks", "value_blocks"; empty for rows.
std::string_view layoutName(StateLayout layout);
std::optional<StateLayout> layoutFromName(std::string_view name);

/// An input, an output or a state slot.
struct TensorInfo {
  std::string name;
  hone_dtype dtype = HONE_F32;
  std::vector<Dim> shape;
  /// State only: the axis that grows (its size in `shape` is 0), or nothing for a state that is replaced as a whole.
  std::optional<int64_t> appendAxis;
  /// Input of an entry with state only: the same in all calls of a session, which is given it once.
  bool isContext = false;
  /// Input of integers only: of the smallest table that they are row numbers of; or 0. Each plus `rowOffset` has to be in
  /// [-rows, rows).
  int64_t rows = 0, rowOffset = 0;
  StateLayout layout = StateLayout::Rows; // state only
  /// Bits of the integers that a slot of f32 in blocks keeps (include/hone/cpu/packing/quantized_blocks.h), or 0: it keeps its elements.
  int64_t bits = 0;
  /// State that is replaced as a whole: the tensor of the weights file that it is until then, or empty: it begins as zeros.
  std::string beginning = {};
};

/// A sum of sizes is at most `most`: for more positions a table has no rows.
struct LimitInfo {
  std::vector<std::string> sizes; // symbols of the entry's inputs
  bool countsHeld = false;        // the positions that the session held before the call count too
  int64_t most = 0;
  std::string table;
};

/// Slots of one attention by their numbers, each of four dimensions that grows along the third, and how many positions they hold.
struct LayerRetention {
  int64_t keys = 0, values = 0;
  std::optional<int64_t> queries; // of the last positions; none: the last keys stay, whatever attends to them
  int64_t budget = 0, sinks = 0, recent = 0;
};

/// How many positions sessions keep of a state, and which of them (docs/compression/kv-cache.md). Layers with queries are in the order
/// of the results of the entry `importance`.
struct RetentionInfo {
  int64_t block = 1;        // positions that a layer evicts at once, at least
  int64_t pooling = 1;      // neighbours whose mean mass counts
  bool accumulates = false; // the mass of all queries counts, and not that of the last ones
  bool sharesHeads = false; // all heads keep the same positions
  std::vector<LayerRetention> layers;
};

/// What a session remembers between calls, which several entries may share.
struct StateInfo {
  std::string name;
  std::vector<TensorInfo> slots;          // in the order in which programs number them
  std::optional<RetentionInfo> retention = std::nullopt; // none: all positions are kept
};

struct EntryInfo {
  std::string name;
  std::vector<TensorInfo> inputs, outputs;
  std::string state; // of the manifest's; empty for an entry that keeps none
  std::vector<LimitInfo> limits;
  bool hasOwnLengths = false; // sequences of a batch may hold different numbers of positions
};

/// The device that an artefact's generated kernels were made for, and where they are.
struct DeviceInfo {
  std::string chip;                 // "sm_90"
  std::string file;                 // in the folder: what the device's driver loads
  std::vector<std::string> kernels; // names in that file; programs launch them by their place in this list
  int64_t services = 0;             // version of hone/runtime/device.h

  bool operator==(const DeviceInfo &) const = default;
};

struct Manifest {
  std::string honeVersion, target, cpuName;
  std::vector<std::string> cpuFeatures;
  std::string sanitizer;            // whose checks the program calls ("address"), or empty
  std::optional<DeviceInfo> device; // of targets that run elsewhere than on the CPU
  int64_t ranks = 1;                // processes that run it together, each with weights of its own
  std::map<std::string, uint64_t> fileBytes;
  std::map<std::string, uint32_t> fileChecksums; // CRC-32 of those that have code
  std::vector<StateInfo> states;
  std::vector<EntryInfo> entries;
  std::vector<std::string> kernels;
  /// Tensors of the weights file that a call looks rows of its first axis up in, and reads no more of.
  std::vector<std::string> gatheredWeights;
  std::string sourceName;
  std::string tokenizer; // file in the folder, or empty
  GenerationInfo generation;
  std::optional<FeatureInfo> features;       // of the entry `encode`, among the tokens of a text
  std::optional<int64_t> mostEmbeddedTokens; // that a text is cut to for the entry `embed`

  const EntryInfo *entry(std::string_view name) const;
  const StateInfo *state(std::string_view name) const;
  /// None for an entry without state.
  std::span<const TensorInfo> slotsOf(const EntryInfo &entry) const;
};

/// The file in the folder of an artefact for `ranks` processes that has the weights of number `rank`.
std::string weightsFile(int64_t ranks, int64_t rank);

/// The manifest in `text`; `name` begins every error.
absl::StatusOr<Manifest> parseManifest(std::string_view text, const std::string &name);
absl::StatusOr<Manifest> readManifest(const std::string &path);

/// The files that the manifest `path` lists, whatever its version is. Fails where it is not the manifest of an artefact.
absl::StatusOr<std::set<std::string>> listFiles(const std::string &path);

/// The JSON text, with a newline at the end.
std::string manifestText(const Manifest &manifest);

} // namespace hone::io

#endif // HONE_IO_MANIFEST_H
