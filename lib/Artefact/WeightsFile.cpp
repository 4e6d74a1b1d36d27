// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes weights.safetensors while the rest of the compiler goes on. What keeps its form is streamed in pieces, what is converted goes
// through memory one parameter at a time and once, so that memory holds neither the model nor the file.

#include "hone/Artefact/Artefact.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hone/Shards.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Import/ModuleText.h"
#include "hone/cli/progress.h"
#include "hone/io/descriptors.h"
#include "hone/io/safetensors.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/MathExtras.h"

#include <atomic>
#include <future>
#include <thread>

using namespace mlir;

namespace hone {

/// Bytes copied before their pages are given back.
static constexpr uint64_t kPiece = uint64_t(16) << 20;

static LogicalResult copyPlane(io::SafetensorsWriter &writer, Attribute storage, Location loc) {
  FailureOr<StoredBytes> stored = StoredBytes::open(storage, loc);
  if (failed(stored))
    return failure();
  for (uint64_t at = 0, end = stored->get().size(); at < end; at += kPiece) {
    ArrayRef<char> piece = stored->get().slice(at, std::min(kPiece, end - at));
    if (failed(report(loc, writer.append({piece.data(), piece.size()}))))
      return failure();
    stored->release(at, at + piece.size());
  }
  return success();
}

namespace {

/// The planes of parameters that are made from other bytes: all planes of one at once. Those that the file has only after planes of other
/// parameters are spilled until then.
class Converter {
public:
  /// Appends plane `number` of `param`. Each is asked for once.
  LogicalResult write(io::SafetensorsWriter &writer, ParamOp param, size_t number);

private:
  LogicalResult convert(ParamOp param);
  void spillRest();

  ParamOp last;
  SmallVector<std::optional<SmallVector<char, 0>>> planes; // of `last`; without those that were written
  llvm::DenseMap<std::pair<Operation *, size_t>, Attribute> spilled;
};

} // namespace

void Converter::spillRest() {
  for (auto [number, bytes] : llvm::enumerate(planes))
    if (bytes)
      spilled[{last, number}] = makeResource(getPlanes(last.getTensorType())[number].type, *bytes);
  planes.clear();
}

LogicalResult Converter::convert(ParamOp param) {
  spillRest();
  last = param;
  FailureOr<SmallVector<SmallVector<char, 0>>> made = convertPlanes(param);
  if (failed(made))
    return failure();
  for (SmallVector<char, 0> &bytes : *made)
    planes.emplace_back(std::move(bytes));
  return success();
}

LogicalResult Converter::write(io::SafetensorsWriter &writer, ParamOp param, size_t number) {
  if (Attribute storage = spilled.lookup({param, number}))
    return copyPlane(writer, storage, param.getLoc());
  if (param != last && failed(convert(param)))
    return failure();
  SmallVector<char, 0> bytes = *std::exchange(planes[number], std::nullopt);
  return report(param.getLoc(), writer.append({bytes.data(), bytes.size()}));
}

namespace {
/// A plane of a parameter, by its number, and where it lies in the file.
struct PlacedPlane {
  ParamOp param;
  size_t number;
  int64_t offset;
};
} // namespace

static LogicalResult writePlane(io::SafetensorsWriter &writer, const PlacedPlane &plane, Converter &converter) {
  ParamOp param = plane.param;
  if (isa<ConvertedAttr>(param.getStorage()))
    return converter.write(writer, param, plane.number);
  return copyPlane(writer, param.getPlaneStorage()[plane.number], param.getLoc());
}

static SmallVector<PlacedPlane> listPlanes(ModuleOp module) {
  SmallVector<PlacedPlane> planes;
  for (auto param : module.getOps<ParamOp>())
    if (auto offsets = param->getAttrOfType<DenseI64ArrayAttr>(hrt::kOffsetsAttr))
      for (auto [i, offset] : llvm::enumerate(offsets.asArrayRef()))
        planes.push_back({param, i, offset});
  // Planes without bytes share their offset with the next one.
  llvm::sort(planes, [](PlacedPlane a, PlacedPlane b) {
    return std::tuple(a.offset, a.param.getSymName(), a.number) < std::tuple(b.offset, b.param.getSymName(), b.number);
  });
  return planes;
}

/// Names that the file has for itself get one more underscore, and so does what these become: no two parameters share a name.
static bool isTaken(StringRef symbol) {
  StringRef word = symbol.ltrim('_');
  return symbol.size() >= word.size() + 2 && (word == "metadata__" || word.starts_with("padding__."));
}

static std::string getTensorName(StringRef symbol, ArrayRef<EncodingPlane> planes, size_t number) {
  return (isTaken(symbol) ? "_" : "") + symbol.str() + (planes.size() > 1 ? "." + planes[number].name.str() : "");
}

std::string getTensorName(ParamOp param, size_t number) {
  return getTensorName(param.getSymName(), getPlanes(param.getTensorType()), number);
}

std::vector<hone_addresses> listAddresses(ModuleOp module) {
  std::vector<hone_addresses> addresses;
  for (PlacedPlane placed : listPlanes(module)) {
    EncodingPlane plane = getPlanes(placed.param.getTensorType())[placed.number];
    std::optional<AddressRule> rule = plane.addresses;
    // Integers that were constants in the code: indices that are known to be inside are not checked there.
    auto known = dyn_cast<DenseIntElementsAttr>(placed.param.getStorage());
    if (known && !rule && !placed.param->hasAttr(kShardsAttrName)) // the same on all ranks
      rule = {HONE_ADDRESS_KNOWN, io::crcOf(getElements(known))};
    if (rule)
      addresses.push_back({static_cast<uint64_t>(placed.offset),
                           static_cast<uint64_t>(getDenseBytes(plane.type).value_or(0)), rule->bound, rule->rule});
  }
  return addresses;
}

/// In the metadata, before the name of a parameter: its type, which says how the planes are to be read.
static constexpr llvm::StringLiteral kTypeOf = "type of ";

static std::map<std::string, std::string> describeTypes(ArrayRef<PlacedPlane> planes) {
  std::map<std::string, std::string> types;
  for (PlacedPlane plane : planes)
    if (plane.number == 0)
      llvm::raw_string_ostream(types[(kTypeOf + plane.param.getSymName()).str()]) << plane.param.getTensorType();
  return types;
}

namespace {
/// Clones of the placed parameters of a module, as one rank has them, and the file that their planes go to.
struct RankFile {
  OwningOpRef<ModuleOp> params;
  SmallVector<PlacedPlane> planes;
  io::SafetensorsWriter writer;
};
} // namespace

static OwningOpRef<ModuleOp> cloneParams(ModuleOp module, int64_t rank) {
  OwningOpRef<ModuleOp> params(ModuleOp::create(module.getLoc()));
  OpBuilder builder(params->getBodyRegion());
  for (auto param : module.getOps<ParamOp>())
    selectRank(cast<ParamOp>(builder.clone(*param)), rank);
  return params;
}

static FailureOr<RankFile> createRankFile(ModuleOp module, const std::string &path, int64_t rank) {
  OwningOpRef<ModuleOp> params = cloneParams(module, rank);
  SmallVector<PlacedPlane> planes = listPlanes(*params);
  std::vector<io::StoredTensor> tensors;
  for (PlacedPlane &placed : planes) {
    EncodingPlane plane = getPlanes(placed.param.getTensorType())[placed.number];
    std::optional<hone_dtype> dtype = getDtype(plane.type.getElementType());
    if (!dtype)
      return placed.param.emitError() << "unsupported element type " << plane.type.getElementType()
                                      << " of a parameter";
    tensors.push_back({getTensorName(placed.param, placed.number), *dtype, plane.type.getShape().vec()});
  }
  auto writer = io::SafetensorsWriter::create(path, std::move(tensors), describeTypes(planes));
  if (!writer.ok())
    return report(module.getLoc(), writer.status());
  return RankFile{std::move(params), std::move(planes), std::move(*writer)};
}

namespace {
/// Holds back the diagnostics of one thread until `emit`.
class HeldDiagnostics {
public:
  explicit HeldDiagnostics(MLIRContext *context) : engine(context->getDiagEngine()) {
    handler = engine.registerHandler([this](Diagnostic &diagnostic) {
      if (std::this_thread::get_id() != thread)
        return failure();
      held.push_back(std::move(diagnostic));
      return success();
    });
  }
  ~HeldDiagnostics() { engine.eraseHandler(handler); }
  HeldDiagnostics(const HeldDiagnostics &) = delete;
  HeldDiagnostics &operator=(const HeldDiagnostics &) = delete;

  /// From here on, what this thread says.
  void hold() { thread = std::this_thread::get_id(); }
  void emit() {
    thread = std::thread::id(); // where it is this one
    for (Diagnostic &diagnostic : held)
      engine.emit(std::move(diagnostic));
  }

private:
  DiagnosticEngine &engine;
  DiagnosticEngine::HandlerID handler;
  std::atomic<std::thread::id> thread;
  std::vector<Diagnostic> held;
};
} // namespace

struct WeightsWriter::State {
  explicit State(MLIRContext *context)
      : context(context), dialects(context->getLoadedDialects()), diagnostics(context) {}

  MLIRContext *context;
  std::vector<Dialect *> dialects; // of the context
  HeldDiagnostics diagnostics;     // of the thread: who stops it has an error of its own
  std::vector<RankFile> files;
  size_t planes = 0;                   // of all files
  std::atomic<size_t> written = 0;     // of them
  std::atomic<bool> isStopped = false; // nobody wants the rest
  std::future<LogicalResult> result;

  ~State() { isStopped = true; } // and the result waits for the thread

  LogicalResult write();
  LogicalResult checkDialects() const;
};

/// Streams the planes of all files out, in their order.
LogicalResult WeightsWriter::State::write() {
  diagnostics.hold();
  for (RankFile &file : files) {
    Converter converter;
    for (const PlacedPlane &plane : file.planes) {
      if (isStopped || failed(writePlane(file.writer, plane, converter)))
        return failure();
      ++written;
    }
    if (failed(report(file.params->getLoc(), file.writer.commit())))
      return failure();
  }
  return success();
}

/// Fails where the context has got a dialect, which would have been a race with the thread.
LogicalResult WeightsWriter::State::checkDialects() const {
  for (Dialect *dialect : context->getLoadedDialects())
    if (!llvm::is_contained(dialects, dialect))
      return emitError(UnknownLoc::get(context))
             << "internal error: dialect '" << dialect->getNamespace() << "' was loaded while weights were written";
  return success();
}

WeightsWriter::WeightsWriter(std::unique_ptr<State> state) : state(std::move(state)) {}
WeightsWriter::WeightsWriter(WeightsWriter &&) = default;
WeightsWriter &WeightsWriter::operator=(WeightsWriter &&) = default;
WeightsWriter::~WeightsWriter() = default;

FailureOr<WeightsWriter> WeightsWriter::start(ModuleOp module, ArrayRef<std::string> paths) {
  auto state = std::make_unique<State>(module.getContext());
  for (auto [rank, path] : llvm::enumerate(paths)) {
    FailureOr<RankFile> file = createRankFile(module, path, static_cast<int64_t>(rank));
    if (failed(file))
      return failure();
    state->planes += file->planes.size();
    state->files.push_back(std::move(*file));
  }
  // Without a thread of its own it writes when somebody waits for it.
  std::launch policy = module.getContext()->isMultithreadingEnabled() ? std::launch::async : std::launch::deferred;
  state->result = std::async(policy, [state = state.get()] { return state->write(); });
  return WeightsWriter(std::move(state));
}

absl::StatusOr<std::vector<io::StoredTensor>> WeightsWriter::getTensors() const {
  return state->files.front().writer.tensorsAsRead();
}

LogicalResult WeightsWriter::finish() {
  cli::Progress progress("writing weights", static_cast<int64_t>(state->planes));
  constexpr std::chrono::milliseconds kInterval{100};
  do
    progress.update(static_cast<int64_t>(state->written));
  while (state->result.wait_for(kInterval) == std::future_status::timeout);
  LogicalResult result = state->result.get();
  state->diagnostics.emit();
  return failure(failed(result) || failed(state->checkDialects()));
}

/// Whether so many bytes could hold a tensor of `type`, so that sizes of its planes can be computed, and its elements unpacked: no
/// encoding has more than 64 elements in a byte.
static bool fitsInto(RankedTensorType type, uint64_t bytes) {
  uint64_t elements = 1, most = llvm::SaturatingMultiply<uint64_t>(bytes, 64);
  for (int64_t size : type.getShape()) {
    elements = llvm::SaturatingMultiply<uint64_t>(elements, std::max<int64_t>(size, 1));
    if (elements > most)
      return false;
  }
  return true;
}

/// The type of a parameter in a file with so many bytes of tensors, or null with a `reason`.
static RankedTensorType readType(StringRef text, uint64_t bytes, MLIRContext *context, std::string &reason) {
  reason = checkModuleText(text);
  if (!reason.empty())
    return {};
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (reason.empty())
      reason = diagnostic.str();
    return success();
  });
  auto type = dyn_cast_or_null<RankedTensorType>(parseType(text, context));
  if (!reason.empty())
    return {};
  llvm::raw_string_ostream os(reason);
  if (!type || !type.hasStaticShape())
    os << "expected a tensor type of known sizes, but got '" << text << "'";
  else if (!fitsInto(type, bytes))
    os << "expected a tensor that " << bytes << " bytes hold, but got " << type;
  return reason.empty() ? type : RankedTensorType();
}

/// The planes of a parameter of `type` in the file of `reader`, or null after an error.
static Attribute findPlanes(const io::SafetensorsReader &reader, StringRef file, StringRef name, RankedTensorType type,
                            Location loc) {
  MLIRContext *context = loc.getContext();
  SmallVector<EncodingPlane> planes = getPlanes(type);
  SmallVector<NamedAttribute> storage;
  for (auto [number, plane] : llvm::enumerate(planes)) {
    std::string tensor = getTensorName(name, planes, number);
    const io::StoredTensor *stored = reader.find(tensor);
    if (!stored || static_cast<int64_t>(stored->bytes) != getDenseBytes(plane.type)) {
      emitError(loc) << file << ": expected a tensor '" << tensor << "' of the bytes of " << plane.type;
      return {};
    }
    auto offset = static_cast<int64_t>(reader.dataOffset() + stored->offset);
    storage.emplace_back(StringAttr::get(context, plane.name),
                         ExternalAttr::get(context, file, offset, static_cast<int64_t>(stored->bytes)));
  }
  return planes.size() > 1 ? Attribute(DictionaryAttr::get(context, storage)) : storage[0].getValue();
}

OwningOpRef<ModuleOp> readWeights(StringRef path, MLIRContext *context) {
  Location loc = UnknownLoc::get(context);
  std::string file = (path.rtrim('/') + "/weights.safetensors").str();
  if (failed(report(loc, io::checkNoLink(file))))
    return {};
  auto reader = io::SafetensorsReader::open(file);
  if (failed(report(loc, reader.status())))
    return {};
  context->loadDialect<HoneDialect, hrt::HrtDialect>();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  OpBuilder builder(module->getBodyRegion());
  for (const auto &[key, text] : reader->metadata()) {
    StringRef name = key;
    if (!name.consume_front(kTypeOf))
      continue;
    std::string reason;
    RankedTensorType type = readType(text, reader->allBytes().size(), context, reason);
    if (!type) {
      emitError(loc) << file << ": cannot read '" << key << "': " << reason;
      return {};
    }
    Attribute storage = findPlanes(*reader, file, name, type, loc);
    if (!storage)
      return {};
    ParamOp::create(builder, loc, name, type, storage);
  }
  if (module->getBody()->empty()) {
    emitError(loc) << file
                   << ": expected the types of weights in the metadata, but there are none: an older version wrote it";
    return {};
  }
  return module;
}

} // namespace hone
