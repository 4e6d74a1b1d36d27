// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading of artefacts, calls and sessions.

#include "core/module.h"

#include "core/communicator.h"
#include "cpu/kernel_table.h"
#include "hone/cpu/cpu_features.h"
#include "hone/io/addresses.h"
#include "hone/io/descriptors.h"
#include "hone/io/signature.h"
#include "hone/runtime/device.h"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <omp.h>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

constexpr std::string_view kManifest = "manifest.json", kProgram = "program.so";
constexpr std::string_view kCpu = "cpu", kCuda = "cuda"; // targets
constexpr std::string_view kAddressSanitizer = "address";
constexpr uint64_t kWeightAlignment = 64; // what program.h promises generated code

std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// OpenMP's number of threads for one call; the caller's own number comes back afterwards.
class ThreadCount {
public:
  explicit ThreadCount(int count) : previous(count > 0 ? omp_get_max_threads() : 0) {
    if (count > 0)
      omp_set_num_threads(count);
  }
  ~ThreadCount() {
    if (previous > 0)
      omp_set_num_threads(previous);
  }
  ThreadCount(const ThreadCount &) = delete;
  ThreadCount &operator=(const ThreadCount &) = delete;

private:
  int previous;
};

} // namespace

absl::StatusOr<std::shared_ptr<const Module>> Module::load(const std::string &folder, Profile *profile) {
  std::shared_ptr<Module> module(new Module(folder, profile));
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return absl::NotFoundError(cat("cannot open ", folder, ": not a folder; a .hone artefact is one"));
  HONE_ASSIGN_OR_RETURN(module->description, io::readManifest(module->file(kManifest)));
  HONE_RETURN_IF_ERROR(module->checkManifest());
  HONE_RETURN_IF_ERROR(module->openProgram());
  HONE_RETURN_IF_ERROR(module->joinRanks());
  HONE_RETURN_IF_ERROR(module->checkFiles());
  HONE_RETURN_IF_ERROR(module->openWeights());
  HONE_RETURN_IF_ERROR(module->loadDevice());
  HONE_RETURN_IF_ERROR(module->fillImports());
  HONE_RETURN_IF_ERROR(module->findEntries());
  return std::shared_ptr<const Module>(std::move(module));
}

Module::~Module() {
  if (library)
    dlclose(library);
}

std::string Module::file(std::string_view name) const { return (std::filesystem::path(path) / name).string(); }

/// What needs no other file.
absl::Status Module::checkManifest() const {
  if (description.target != kCpu && description.target != kCuda)
    return invalid(path, ": unsupported target '", description.target, "'; supported: ", kCpu, ", ", kCuda);
  HONE_RETURN_IF_ERROR(checkCpu());
  HONE_RETURN_IF_ERROR(checkSanitizer());
  if (description.target != kCpu)
    HONE_RETURN_IF_ERROR(checkDevice());
  for (const std::string &needed : {std::string(kProgram), description.tokenizer})
    if (!needed.empty() && !description.fileBytes.contains(needed))
      return invalid(file(kManifest), ": expected files to list ", needed);
  for (const std::string &code : {std::string(kProgram), description.device ? description.device->file : ""})
    if (!code.empty() && !description.fileChecksums.contains(code))
      return invalid(file(kManifest), ": expected files.", code, ".crc32 to be a sum of 32 bits");
  return absl::OkStatus();
}

/// Loads code, which says itself what it was compiled for: nothing that the manifest alone says is done before.
absl::Status Module::openProgram() {
  HONE_RETURN_IF_ERROR(checkFile(std::string(kProgram)));
  std::string name = std::filesystem::absolute(file(kProgram)).string();
  library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return invalid("cannot load ", file(kProgram), ": ", dlerror());
  program = static_cast<const hone_program *>(dlsym(library, "hone_program"));
  if (!program)
    return invalid(file(kProgram), ": not a program of Hone: it has no symbol hone_program");
  if (program->abi_version != HONE_PROGRAM_ABI_VERSION)
    return invalid(file(kProgram), ": unsupported program version ", program->abi_version,
                   "; supported: ", HONE_PROGRAM_ABI_VERSION);
  signature = static_cast<const hone_signature *>(dlsym(library, "hone_signature"));
  if (!signature)
    return invalid(file(kProgram), ": has no signature");
  layout = signature->text;
  return io::takeSignature(layout, io::signatureOf(description), file(kManifest));
}

/// An artefact for several ranks: finds the others, which have loaded the same for kernels of the same ISA.
absl::Status Module::joinRanks() {
  int64_t rank = 0;
  if (description.ranks > 1 && !cpu::supportedIsas().empty()) {
    std::string same = io::manifestText(description) + std::string(cpu::isaName(cpu::supportedIsas().back()));
    absl::StatusOr<Communicator *> joined = Communicator::join(description.ranks, same);
    if (!joined.ok())
      return aboutThis(joined.status());
    ranks = *joined;
    rank = ranks->rank();
  }
  weightsName = io::weightsFile(description.ranks, rank);
  return absl::OkStatus();
}

/// Whether a rank needs the file: weights of others may be elsewhere.
bool Module::needsFile(const std::string &name) const {
  for (int64_t rank = 0; rank < description.ranks; ++rank)
    if (name == io::weightsFile(description.ranks, rank))
      return name == weightsName;
  return true;
}

absl::Status Module::checkFiles() const {
  if (!description.fileBytes.contains(weightsName))
    return invalid(file(kManifest), ": expected files to list ", weightsName);
  for (const auto &[name, bytes] : description.fileBytes)
    if (needsFile(name) && name != kProgram)
      HONE_RETURN_IF_ERROR(checkFile(name));
  return absl::OkStatus();
}

absl::Status Module::checkCpu() const {
  if (cpu::supportedIsas().empty())
    return invalid("this runtime needs a CPU with AVX2, FMA and F16C (x86-64-v3)");
  std::vector<std::string> lacking;
  for (const std::string &feature : description.cpuFeatures)
    if (!cpu::cpuHasFeature(feature).value_or(false))
      lacking.push_back(feature);
  if (lacking.empty())
    return absl::OkStatus();
  return invalid(path, ": this artefact was built for ", description.cpuName, " (", join(description.cpuFeatures),
                 "); this CPU lacks ", join(lacking));
}

/// Whether the process has the functions that the checks of a program call.
absl::Status Module::checkSanitizer() const {
  if (description.sanitizer.empty())
    return absl::OkStatus();
  if (description.sanitizer != kAddressSanitizer)
    return invalid(path, ": unsupported sanitizer '", description.sanitizer, "'; supported: ", kAddressSanitizer);
  if (dlsym(RTLD_DEFAULT, "__asan_init"))
    return absl::OkStatus();
  return invalid(path,
                 ": this artefact was compiled with --sanitize=address, and this process has no AddressSanitizer; "
                 "run it with a build of the preset asan, or compile it without");
}

absl::Status Module::checkDevice() const {
  const std::optional<io::DeviceInfo> &info = description.device;
  if (!info)
    return invalid(file(kManifest), ": expected a member 'device' for the target '", description.target, "'");
  if (info->services != HONE_DEVICE_SERVICES_VERSION)
    return invalid(path, ": unsupported version ", info->services,
                   " of device services; supported: ", HONE_DEVICE_SERVICES_VERSION);
  if (!description.fileBytes.contains(info->file))
    return invalid(file(kManifest), ": expected files to list ", info->file);
  for (const io::StateInfo &state : description.states)
    for (const io::TensorInfo &slot : state.slots)
      if (slot.layout != io::StateLayout::Rows)
        return invalid(path, ": unsupported layout ", io::layoutName(slot.layout), " of state '", slot.name,
                       "' on a device; supported: rows");
  return absl::OkStatus();
}

absl::Status Module::checkFile(const std::string &name) const {
  std::error_code error;
  uint64_t expected = description.fileBytes.at(name), bytes = std::filesystem::file_size(file(name), error);
  if (error)
    return absl::NotFoundError(cat("cannot open ", file(name), ": ", error.message()));
  HONE_RETURN_IF_ERROR(io::checkNoLink(file(name)));
  if (bytes != expected)
    return invalid(file(name), ": expected ", expected, " bytes, but got ", bytes,
                   "; the artefact is cut short or mixed from two");
  auto sum = description.fileChecksums.find(name);
  if (sum == description.fileChecksums.end())
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(io::MappedFile content, io::MappedFile::open(file(name)));
  if (uint32_t found = io::crcOf(content.text()); found != sum->second)
    return invalid(file(name), ": expected the CRC-32 ", sum->second, ", but got ", found,
                   "; the artefact is damaged or mixed from two");
  return absl::OkStatus();
}

absl::Status Module::openWeights() {
  std::string weights = file(weightsName);
  HONE_ASSIGN_OR_RETURN(weightFile, io::SafetensorsReader::open(weights));
  if (weightFile.dataOffset() % kWeightAlignment != 0)
    return invalid(weights, ": expected tensor data to begin at a multiple of ", kWeightAlignment, " bytes, but got ",
                   weightFile.dataOffset());
  HONE_RETURN_IF_ERROR(io::takeSignature(layout, io::signatureOf(weightFile.tensors()), weights));
  if (profile)
    profile->setWeights(weightFile.allBytes());
  HONE_RETURN_IF_ERROR(checkBeginnings());
  return checkWeightAddresses();
}

/// Reads the elements that are addresses, and no page of others.
absl::Status Module::checkWeightAddresses() const {
  for (const hone_addresses &plane : std::span(signature->addresses, signature->address_count)) {
    auto placeOf = [](const io::StoredTensor &tensor) { return std::pair(tensor.offset, tensor.bytes); };
    std::pair place(plane.offset, plane.bytes);
    auto tensor = std::ranges::lower_bound(weightFile.tensors(), place, {}, placeOf); // as they are sorted
    if (tensor == weightFile.tensors().end() || placeOf(*tensor) != place)
      return invalid(file(kProgram), ": expected a weight of ", plane.bytes, " bytes at ", plane.offset,
                     ", but there is none");
    absl::Status status =
        io::checkAddresses(plane.rule, plane.bound, {weightFile.bytesOf(*tensor), tensor->bytes}, tensor->name);
    if (!status.ok())
      return invalid(file(weightsName), ": ", status.message(), "; the artefact is damaged");
  }
  return absl::OkStatus();
}

absl::Status Module::loadDevice() {
  if (!description.device)
    return absl::OkStatus();
  absl::StatusOr<const DeviceLibrary *> library = loadDeviceLibrary(description.target);
  HONE_RETURN_IF_ERROR(agreeAboutThis(library.status()));
  absl::StatusOr<std::unique_ptr<Device>> opened =
      (*library)->open({file(description.device->file), &*description.device, weightFile.allBytes(),
                        ranks ? &ranks->processes() : nullptr});
  HONE_RETURN_IF_ERROR(agreeAboutThis(opened.status()));
  device = *std::move(opened);
  return ranks ? agreeAboutThis(device->joinRanks()) : absl::OkStatus();
}

/// What all ranks have tried; ranks that go on would wait for one that has failed.
absl::Status Module::agreeAboutThis(absl::Status status) const {
  return aboutThis(ranks ? ranks->agree(std::move(status)) : std::move(status));
}

absl::Status Module::aboutThis(absl::Status status) const {
  return status.ok() ? status : absl::Status(status.code(), cat(path, ": ", status.message()));
}

absl::Status Module::fillImports() const {
  std::vector<std::string> missing;
  for (const hone_import &import : std::span(program->imports, program->import_count)) {
    void *function = findImport(import.name);
    if (!function)
      missing.emplace_back(import.name);
    else // Atomic, as a second load of one file gets the same library and writes what calls of the first may be reading.
      std::atomic_ref(*import.slot).store(function, std::memory_order_relaxed);
  }
  if (missing.empty())
    return absl::OkStatus();
  return invalid(file(kProgram), ": needs ", join(missing), ", which this runtime does not have; it was built by hone ",
                 description.honeVersion);
}

void *Module::findImport(std::string_view name) const {
  if (void *service = findService(name))
    return service;
  if (hone_kernel_fn collective = description.ranks > 1 ? findCollective(name) : nullptr)
    return reinterpret_cast<void *>(collective);
  if (!device)
    return reinterpret_cast<void *>(profile ? findProfiledKernel(name) : cpu::findKernel(name));
  void *service = findDeviceService(name);
  return service ? service : reinterpret_cast<void *>(device->findKernel(name));
}

absl::Status Module::findEntries() {
  std::span<const hone_entry> functions(program->entries, program->entry_count);
  for (const io::EntryInfo &info : description.entries) {
    auto found =
        std::ranges::find(functions, info.name, [](const hone_entry &entry) { return std::string(entry.name); });
    if (found == functions.end())
      return invalid(file(kProgram), ": has no entry '", info.name, "', which the manifest lists");
    entries.push_back({&info, found->function});
  }
  return absl::OkStatus();
}

absl::StatusOr<Module::Entry> Module::findEntry(std::string_view name) const {
  std::string names;
  for (const Entry &entry : entries) {
    if (entry.info->name == name)
      return entry;
    names += (names.empty() ? "" : ", ") + entry.info->name;
  }
  return invalid(path, ": has no entry '", name, "'; its entries are: ", names);
}

absl::StatusOr<const io::EntryInfo *> Module::findEntryInfo(std::string_view name) const {
  HONE_ASSIGN_OR_RETURN(Entry entry, findEntry(name));
  return entry.info;
}

absl::StatusOr<std::vector<io::Array>> Module::call(std::string_view name, std::span<const NamedTensor> inputs,
                                                    int threads) const {
  HONE_ASSIGN_OR_RETURN(Entry entry, findEntry(name));
  HONE_ASSIGN_OR_RETURN(BoundInputs bound, bindInputs(*entry.info, inputs));
  ThreadCount threadCount(threads);
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Memory> scratch, takeMemory());
  CallHooks hooks = {profile};
  auto results = CallContext(*entry.info, bound, weightFile.data(), *scratch, nullptr, hooks).run(entry.function);
  giveMemory(std::move(scratch));
  return results;
}

absl::StatusOr<std::unique_ptr<Memory>> Module::createMemory() const {
  auto memory = std::make_unique<Memory>();
  if (device) {
    HONE_ASSIGN_OR_RETURN(memory->queue, device->createQueue());
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<Memory>> Module::takeMemory() const {
  std::lock_guard lock(mutex);
  std::erase_if(idle, [](const auto &memory) { return memory->queue && !memory->queue->isUsable(); });
  if (idle.empty())
    return createMemory();
  std::unique_ptr<Memory> memory = std::move(idle.back());
  idle.pop_back();
  return memory;
}

void Module::giveMemory(std::unique_ptr<Memory> memory) const {
  std::lock_guard lock(mutex);
  idle.push_back(std::move(memory));
}

absl::StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Module> module, std::string_view entry,
                                                         std::shared_ptr<StateMemory> offload) {
  if (offload && module->device)
    return invalid(module->path, ": unsupported target '", module->description.target,
                   "' of a state that is offloaded; supported: cpu");
  HONE_ASSIGN_OR_RETURN(Module::Entry target, module->findEntry(entry));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Memory> scratch, module->createMemory());
  return std::unique_ptr<Session>(new Session(std::move(module), target, std::move(scratch), std::move(offload)));
}

Session::Session(std::shared_ptr<const Module> module, Module::Entry entry, std::unique_ptr<Memory> scratch,
                 std::shared_ptr<StateMemory> given)
    : owner(std::move(module)), target(entry), scratch(std::move(scratch)), offload(std::move(given)),
      memory(owner->description.slotsOf(*entry.info),
             offload                ? *offload
             : this->scratch->queue ? this->scratch->queue->stateMemory()
                                    : hostStateMemory(),
             Module::beginningsOf(owner, *entry.info, *this->scratch)) {
  const io::StateInfo *state = owner->description.state(entry.info->state);
  if (!state || !state->retention)
    return;
  retention.emplace(*state->retention);
  for (size_t slot = 0; slot < memory.slots().size(); ++slot)
    if (std::optional<int64_t> bound = retention->boundOf(slot))
      memory.slots()[slot].boundReserved(*bound);
}

absl::StatusOr<std::vector<io::Array>> Session::forward(std::span<const NamedTensor> inputs) {
  return run(target, inputs, nullptr);
}

absl::StatusOr<std::vector<io::Array>> Session::call(std::string_view name, std::span<const NamedTensor> inputs) {
  HONE_ASSIGN_OR_RETURN(Module::Entry other, owner->findEntry(name));
  if (!other.info->state.empty() && other.info->state != target.info->state)
    return invalid("cannot call '", name, "' in a session of '", target.info->name, "': it keeps the state '",
                   other.info->state, "', and the session has ",
                   target.info->state.empty() ? "none" : cat("'", target.info->state, "'"));
  return run(other, inputs, nullptr);
}

absl::StatusOr<std::unique_ptr<Session>> Session::fork() {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy, create(owner, target.info->name, offload));
  for (const auto &[name, given] : context) {
    HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::copyOf(given.array.view()));
    copy->context.emplace(name, Context{std::move(array), ++copy->contextVersion, given.isFilled});
  }
  HONE_RETURN_IF_ERROR(copy->memory.forkFrom(memory));
  copy->retention = retention;
  copy->threads = threads;
  return copy;
}

absl::StatusOr<std::unique_ptr<Session>> Session::join(std::span<const Session *const> sessions) {
  const Session &first = *sessions.front();
  std::vector<const State *> states;
  for (const Session *session : sessions) {
    if (session->owner != first.owner || session->target.info != first.target.info)
      return invalid("cannot join sessions of different modules or entries");
    if (!session->context.empty())
      return invalid("cannot join sessions with context: '", session->context.begin()->first, "' is that of one");
    states.push_back(&session->memory);
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> joined, create(first.owner, first.target.info->name, first.offload));
  HONE_RETURN_IF_ERROR(joined->memory.copyFrom(states));
  HONE_RETURN_IF_ERROR(joined->checkLengths(*first.target.info));
  joined->threads = first.threads;
  return joined;
}

/// An entry that knows one length alone would take what follows a shorter sequence for its own.
absl::Status Session::checkLengths(const io::EntryInfo &entry) const {
  if (entry.hasOwnLengths || entry.state.empty() || memory.lengths().areEqual())
    return absl::OkStatus();
  return invalid("cannot call '", entry.name,
                 "' with sequences of different lengths; 'hone compile --speculate=batch' ",
                 "lets them have their own");
}

absl::StatusOr<int64_t> Session::sample(std::span<const NamedTensor> inputs, uint64_t draw) {
  SampledToken sampled = {draw};
  HONE_RETURN_IF_ERROR(run(target, inputs, &sampled).status());
  return sampled.token;
}

/// Evicts what the budget has no room for beside the tokens of a call, which are its first input.
absl::Status Session::makeRoom(const BoundInputs &bound) {
  const hone_tensor &tokens = bound.tensors.front();
  if (memory.padding(0) != 0 || tokens.rank != 2 || tokens.sizes[0] != 1)
    return invalid("expected one sequence without padding, as a budget bounds its keys");
  return retention->makeRoom(memory, tokens.sizes[1], [&]() -> absl::StatusOr<std::vector<io::Array>> {
    HONE_ASSIGN_OR_RETURN(Module::Entry importance, owner->findEntry(kImportanceEntry));
    if (importance.info->state != target.info->state || !importance.info->inputs.empty())
      return invalid(owner->path, ": expected entry '", kImportanceEntry, "' to take the state of '", target.info->name,
                     "' alone");
    return run(importance, {}, nullptr);
  });
}

absl::StatusOr<std::vector<io::Array>> Session::run(const Module::Entry &entry, std::span<const NamedTensor> inputs,
                                                    SampledToken *sampled) {
  std::vector<NamedTensor> all(inputs.begin(), inputs.end());
  for (const io::TensorInfo &input : entry.info->inputs)
    if (auto given = context.find(input.name);
        input.isContext && given != context.end() &&
        std::ranges::find(inputs, input.name, &NamedTensor::name) == inputs.end())
      all.push_back({input.name, given->second.array.view(), given->second.version});
  HONE_ASSIGN_OR_RETURN(BoundInputs bound, bindInputs(*entry.info, all, memory.symbols(), memory.length()));
  HONE_RETURN_IF_ERROR(memory.checkPadding(bound.symbols));
  HONE_RETURN_IF_ERROR(checkLengths(*entry.info));
  if (retention && entry.info == target.info)
    HONE_RETURN_IF_ERROR(makeRoom(bound));
  ThreadCount threadCount(threads);
  CallHooks hooks = {owner->profile, observer ? &observer : nullptr, sampled};
  State *state = entry.info->state.empty() ? nullptr : &memory;
  return CallContext(*entry.info, bound, owner->weightFile.data(), *scratch, state, hooks).run(entry.function);
}

} // namespace hone::rt
