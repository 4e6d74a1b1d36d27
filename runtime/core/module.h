// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loaded artefact, and sessions over it.

#ifndef HONE_RUNTIME_CORE_MODULE_H
#define HONE_RUNTIME_CORE_MODULE_H

#include "core/call.h"
#include "core/retention.h"
#include "hone/io/safetensors.h"
#include "hone/runtime/signature.h"

#include <memory>
#include <mutex>

namespace hone::rt {

class Communicator;

/// The entry that computes what the entry `forward` reads of an encoder.
constexpr std::string_view kEncoderEntry = "encode";

/// Immutable after loading; calls may run in parallel threads. Unloaded with the last pointer to it.
class Module {
public:
  /// Loads `folder`. Fails, in one sentence, for an artefact that is cut short, of another version, for another target
  /// or CPU, whose files do not say what its program was compiled for, or that needs a kernel this runtime does not have. With a profile, which outlives the module, its calls are
  /// recorded there; the program may then not be loaded anywhere else in the process without it at the same time.
  static absl::StatusOr<std::shared_ptr<const Module>> load(const std::string &folder, Profile *profile = nullptr);

  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  ~Module();

  const std::string &folder() const { return path; }
  const io::Manifest &manifest() const { return description; }
  const io::SafetensorsReader &weights() const { return weightFile; }

  /// Fails with the names that there are.
  absl::StatusOr<const io::EntryInfo *> findEntryInfo(std::string_view entry) const;

  /// Calls an entry that keeps no state. `threads` 0 leaves the number to OpenMP.
  absl::StatusOr<std::vector<io::Array>> call(std::string_view entry, std::span<const NamedTensor> inputs,
                                              int threads = 0) const;

private:
  friend class Session;
  Module(std::string folder, Profile *profile) : path(std::move(folder)), profile(profile) {}

  struct Entry {
    const io::EntryInfo *info;
    hone_entry_fn function;
  };

  absl::Status checkManifest() const;
  absl::Status openProgram();
  absl::Status joinRanks();
  bool needsFile(const std::string &name) const;
  absl::Status checkFiles() const;
  absl::Status openWeights();
  absl::Status checkWeightAddresses() const;
  absl::Status checkBeginnings() const;
  static std::vector<StateBuffer> beginningsOf(const std::shared_ptr<const Module> &module, const io::EntryInfo &entry,
                                               const Memory &memory);
  absl::Status checkCpu() const;
  absl::Status checkSanitizer() const;
  absl::Status checkDevice() const;
  absl::Status checkFile(const std::string &name) const;
  absl::Status loadDevice();
  absl::Status aboutThis(absl::Status status) const;
  absl::Status agreeAboutThis(absl::Status status) const;
  absl::Status fillImports() const;
  void *findImport(std::string_view name) const;
  absl::Status findEntries();
  absl::StatusOr<Entry> findEntry(std::string_view name) const;
  std::string file(std::string_view name) const;
  absl::StatusOr<std::unique_ptr<Memory>> createMemory() const;
  absl::StatusOr<std::unique_ptr<Memory>> takeMemory() const;
  void giveMemory(std::unique_ptr<Memory> memory) const;

  std::string path;
  Profile *profile;
  io::Manifest description;
  std::string weightsName; // those of this rank
  io::SafetensorsReader weightFile;
  Communicator *ranks = nullptr;  // of an artefact for several
  std::unique_ptr<Device> device; // of a target that is not the CPU
  void *library = nullptr;
  const hone_program *program = nullptr;     // in the library
  const hone_signature *signature = nullptr; // likewise
  std::string_view layout;                   // what the signature says of the weights
  std::vector<Entry> entries;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Memory>> idle; // what calls without a session left, for the next of them
};

/// A sequence of calls that share one state: of the entry that the session was made for, and of others that keep the same one. One thread
/// at a time; sessions of one module are independent.
class Session {
public:
  /// With `offload` it keeps its state there, as its forks do, and not in the host's memory. Fails for artefacts of other targets then.
  static absl::StatusOr<std::unique_ptr<Session>> create(std::shared_ptr<const Module> module,
                                                         std::string_view entry = "forward",
                                                         std::shared_ptr<StateMemory> offload = nullptr);

  const io::EntryInfo &entry() const { return *target.info; }
  const Module &module() const { return *owner; }
  std::shared_ptr<const Module> sharedModule() const { return owner; }
  State &state() { return memory; }

  /// Whether its state keeps a bounded number of positions (docs/compression/kv-cache.md): calls may evict some.
  bool isBounded() const { return retention.has_value(); }

  /// Threads of this session's calls; 0 leaves the number to OpenMP.
  void setThreads(int count) { threads = count; }
  int threadCount() const { return threads; }

  /// Receives what the program observes in this session's calls; empty: nobody does.
  void setObserver(Observer receiver) { observer = std::move(receiver); }

  /// Fails for a name that no context of the entry has.
  absl::Status checkContextName(std::string_view name) const;

  /// Copies inputs of the entry that are the same in all its calls, before the first of them. They replace those of the
  /// same names, and stay when the state is reset. After a failure nothing has changed.
  absl::Status setContext(std::span<const NamedTensor> inputs);

  /// Gives a context input that has no value one of zeros, of size 1 where its shape is open. Fails as setContext does.
  absl::Status fillContext(std::string_view name);

  /// What setContext or encode gave of that name, or null.
  const io::Array *givenContext(std::string_view name) const;

  /// Computes the context with the entry `encode`, which has results of the names of context inputs, from an encoder's inputs. Fails where
  /// the module has no such entry, and as setContext does; after a failure nothing has changed.
  absl::Status encode(std::span<const NamedTensor> inputs);

  /// Another session of the same entry, with a copy of this one's state and context: two that begin alike read a prompt once. They share the
  /// memory of the positions that they have in common (State::forkFrom), and may be used by different threads.
  absl::StatusOr<std::unique_ptr<Session>> fork();

  /// A session whose sequences are those of others, at least one, of the same module and entry and without context: each goes on from its own
  /// length.
  static absl::StatusOr<std::unique_ptr<Session>> join(std::span<const Session *const> sessions);

  /// Runs an entry that keeps the session's state, or none, on these inputs and the context. After a failure the state is as it was
  /// before.
  absl::StatusOr<std::vector<io::Array>> call(std::string_view entry, std::span<const NamedTensor> inputs);

  /// Likewise, the session's own entry.
  absl::StatusOr<std::vector<io::Array>> forward(std::span<const NamedTensor> inputs);

  /// Whether the entry runs on a device, which can sample tokens itself.
  bool isOnDevice() const { return scratch->queue != nullptr; }

  /// On a device: sampling from here on has these options and follows the tokens of `history`.
  void beginSampling(const sampling::SamplingOptions &options, std::vector<int32_t> history) {
    scratch->queue->beginSampling(options, std::move(history));
  }

  /// forward() of an entry whose first output is logits, f32 [1, rows, vocabulary], on a device. It returns the token that is sampled
  /// there from the last row, or why there is none (DeviceQueue::sample), and not the outputs.
  absl::StatusOr<int64_t> sample(std::span<const NamedTensor> inputs, uint64_t draw);

private:
  Session(std::shared_ptr<const Module> module, Module::Entry entry, std::unique_ptr<Memory> scratch,
          std::shared_ptr<StateMemory> offload);
  absl::Status checkBeginning() const;
  absl::Status checkLengths(const io::EntryInfo &entry) const;
  absl::Status makeRoom(const BoundInputs &bound);
  absl::StatusOr<std::vector<io::Array>> run(const Module::Entry &entry, std::span<const NamedTensor> inputs,
                                             SampledToken *sampled);

  struct Context {
    io::Array array;
    uint64_t version;      // no two arrays of a session have the same
    bool isFilled = false; // by fillContext
  };

  std::shared_ptr<const Module> owner;
  Module::Entry target;
  std::unique_ptr<Memory> scratch;
  std::shared_ptr<StateMemory> offload; // null: the state is where the program computes
  State memory;
  std::optional<Retention> retention; // of a state that is bounded
  std::map<std::string, Context> context;
  uint64_t contextVersion = 0; // the latest
  Observer observer;
  int threads = 0;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_MODULE_H
