// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call's services do on a GPU.

#include "cuda/queue.h"

#include "cuda/kernels/fatbin_index.h"
#include "cuda/kernels/store_bytes.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hone::rt::cuda {
namespace {

using hone::cuda::LaunchShape;
using io::cat;

constexpr uint64_t kChunk = uint64_t{4} << 20;      // of pinned memory; the inputs and outputs of most calls fit
constexpr unsigned kSharedWithoutAsking = 48 << 10; // larger blocks of shared memory are asked for

CUdeviceptr addressOf(const void *memory) { return reinterpret_cast<CUdeviceptr>(memory); }

void *pointerTo(CUdeviceptr memory) { return reinterpret_cast<void *>(memory); }

bool isToken(const hone_tensor &tensor) { return tensor.dtype == HONE_I64 || tensor.dtype == HONE_I32; }

/// The only element of a tensor of tokens, or nothing.
std::optional<int64_t> tokenOf(const hone_tensor &tensor) {
  bool isOne = std::all_of(tensor.sizes, tensor.sizes + tensor.rank, [](int64_t size) { return size == 1; });
  if (!isOne || !isToken(tensor))
    return std::nullopt;
  return tensor.dtype == HONE_I64 ? *static_cast<const int64_t *>(tensor.data)
                                  : *static_cast<const int32_t *>(tensor.data);
}

const char *stridedCopyName(int width) {
  switch (width) {
  case 1:
    return "strided_copy_1";
  case 2:
    return "strided_copy_2";
  case 4:
    return "strided_copy_4";
  case 8:
    return "strided_copy_8";
  default:
    return "strided_copy_16";
  }
}

} // namespace

Queue::Queue(std::shared_ptr<const LoadedImage> image, std::shared_ptr<Stream> stream)
    : image(std::move(image)), stream(stream), state(*this, stream), staging(stream, kChunk), arena(stream),
      lengthOnDevice(stream), sampler(stream) {}

absl::StatusOr<std::unique_ptr<Queue>> Queue::create(std::shared_ptr<const LoadedImage> image, GpuRanks *ranks) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<Stream> stream, Stream::create(image->context(), ranks));
  std::unique_ptr<Queue> queue(new Queue(std::move(image), std::move(stream)));
  HONE_RETURN_IF_ERROR(queue->createProgress());
  return queue;
}

absl::Status Queue::createProgress() {
  Context::Scope current(context());
  void *memory = nullptr;
  HONE_RETURN_IF_ERROR(
      context().check(context().driver().cuMemHostAlloc(&memory, sizeof(uint32_t), CU_MEMHOSTALLOC_PORTABLE),
                      "allocate pinned memory"));
  progress = static_cast<volatile uint32_t *>(memory);
  *progress = 0;
  return absl::OkStatus();
}

Queue::~Queue() {
  if (!isUsable() || !progress)
    return;
  Context::Scope current(context());
  context().driver().cuMemFreeHost(const_cast<uint32_t *>(progress));
}

absl::Status Queue::checkUsable() const {
  if (isUsable())
    return absl::OkStatus();
  return absl::UnavailableError(
      "cannot go on after the fault of a kernel: this process cannot use the GPU any more; begin another one");
}

absl::Status Queue::begin(std::span<const hone_tensor> tensors, LaunchReceiver launchReceiver) {
  HONE_RETURN_IF_ERROR(checkUsable());
  scope.emplace(context());
  receiver = std::move(launchReceiver);
  std::vector<int64_t> sizes;
  for (const hone_tensor &tensor : tensors)
    sizes.insert(sizes.end(), tensor.sizes, tensor.sizes + tensor.rank);
  if (!receiver && sizes == latestSizes) // a decode step, which will enqueue what the one before did
    stream->collect();
  latestSizes = std::move(sizes);
  isLengthOnDevice = false;
  isGiven.clear();
  results.clear();
  sampled = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<hone::cuda::StateLength> Queue::stateLength(int64_t length) {
  if (!isLengthOnDevice) {
    HONE_RETURN_IF_ERROR(explain(lengthOnDevice.reserve(sizeof length, "the length of the state")));
    HONE_RETURN_IF_ERROR(send(lengthOnDevice.address(), &length, sizeof length));
    isLengthOnDevice = true;
  }
  return hone::cuda::StateLength{length, static_cast<const int64_t *>(lengthOnDevice.data())};
}

absl::Status Queue::end() {
  absl::Status status;
  for (const Output &output : results)
    if (status.ok())
      status = staging.download(output.host, output.from, output.bytes);
  if (status.ok())
    status = stream->submit(/*isWhole=*/true);
  status = status.ok() ? waitForAll() : explain(std::move(status));
  if (!status.ok())
    versions.clear(); // copies that were enqueued may not have been made
  if (sampled)
    held = status.ok() && *sampled >= 0 ? std::optional(*sampled) : std::nullopt;
  staging.drop();
  for (CUdeviceptr memory : allocations)
    stream->free(memory);
  allocations.clear();
  stream->stop();
  scope.reset();
  return status;
}

DeviceBuffer &Queue::bufferOf(std::vector<DeviceBuffer> &buffers, size_t index) {
  while (buffers.size() <= index)
    buffers.emplace_back(stream);
  return buffers[index];
}

absl::StatusOr<void *> Queue::input(size_t index, const hone_tensor &tensor, uint64_t version) {
  DeviceBuffer &buffer = bufferOf(inputs, index);
  isGiven.resize(inputs.size());
  versions.resize(inputs.size());
  if (isGiven[index] || (version != 0 && versions[index] == version))
    return buffer.data();
  uint64_t bytes = bytesOf(static_cast<hone_dtype>(tensor.dtype), {tensor.sizes, static_cast<size_t>(tensor.rank)});
  isGiven[index] = true;
  if (index == 0 && held && tokenOf(tensor) == held) // the call before has written it there
    return buffer.data();
  if (index == 0) {
    held.reset();
    tokenBytes = isToken(tensor) ? static_cast<int32_t>(io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype))) : 0;
  }
  HONE_RETURN_IF_ERROR(explain(buffer.reserve(bytes, "an input")));
  HONE_RETURN_IF_ERROR(send(buffer.address(), tensor.data, bytes));
  versions[index] = version;
  return buffer.data();
}

absl::StatusOr<void *> Queue::output(size_t index, void *host, uint64_t bytes) {
  DeviceBuffer &buffer = bufferOf(outputs, index);
  HONE_RETURN_IF_ERROR(explain(buffer.reserve(bytes, "an output")));
  results.push_back({index, host, buffer.address(), bytes});
  return buffer.data();
}

absl::Status Queue::placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots) {
  constexpr uint64_t largest = uint64_t{1} << 62;
  uint64_t total = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    slots[i] = pointerTo(total);
    total += (std::min(bytes[i], largest) + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
    if (total > largest)
      return context().outOfMemory(bytes[i], "a buffer of the call");
  }
  HONE_RETURN_IF_ERROR(explain(arena.reserve(total, "the buffers of the call")));
  for (void *&slot : slots)
    slot = pointerTo(addressOf(slot) + arena.address());
  return absl::OkStatus();
}

absl::StatusOr<void *> Queue::allocate(uint64_t bytes) {
  absl::StatusOr<CUdeviceptr> memory = stream->allocate(bytes, "a buffer of the call");
  HONE_RETURN_IF_ERROR(explain(memory.status()));
  allocations.insert(*memory);
  return pointerTo(*memory);
}

void Queue::release(void *memory) {
  if (allocations.erase(addressOf(memory)) > 0)
    stream->free(addressOf(memory));
}

absl::Status Queue::launch(int64_t kernel, std::span<const int64_t, 7> shape, void **arguments) {
  std::span<const Kernel> kernels = image->kernels();
  if (kernel < 0 || kernel >= static_cast<int64_t>(kernels.size()))
    return absl::DataLossError(cat("the program launches kernel ", kernel, ", but the manifest lists ", kernels.size(),
                                   "; the artefact is damaged or mixed from two"));
  const Kernel &target = kernels[static_cast<size_t>(kernel)];
  uint32_t numbers[7];
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (shape[i] < 0 || shape[i] > std::numeric_limits<int32_t>::max())
      return io::invalid("cannot launch kernel '", target.name, "': ", shape[i],
                         " is no number of blocks, threads or bytes");
    numbers[i] = static_cast<uint32_t>(shape[i]);
  }
  return enqueue(target, {{numbers[0], numbers[1], numbers[2]}, {numbers[3], numbers[4], numbers[5]}, numbers[6]},
                 arguments);
}

absl::StatusOr<Kernel> Queue::kernelOf(const hone::cuda::DeviceFunction &function) {
  const hone::cuda::Fatbin &fatbin = hone::cuda::fatbins()[function.fatbin];
  CUfunction &known = functions[function.name];
  if (!known) {
    HONE_ASSIGN_OR_RETURN(known, context().function(fatbin.bytes.data(), function.name));
  }
  return Kernel{function.name, known, fatbin.isDependent};
}

absl::Status Queue::launch(const hone::cuda::DeviceFunction &function, const LaunchShape &shape, void **arguments) {
  absl::StatusOr<Kernel> kernel = kernelOf(function);
  HONE_RETURN_IF_ERROR(explain(kernel.status()));
  return enqueue(*kernel, shape, arguments);
}

absl::Status Queue::enqueue(const Kernel &kernel, const LaunchShape &shape, void **arguments) {
  const auto &[grid, block, shared] = shape;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
    return absl::OkStatus();
  auto begin = std::chrono::steady_clock::now();
  absl::Status status;
  if (shared > kSharedWithoutAsking)
    status = context().allowShared(kernel, shared);
  if (status.ok())
    status = stream->launch(kernel, shape, arguments);
  if (!status.ok() || stream->collects())
    return explain(std::move(status));
  return follow(kernel.name, begin);
}

absl::StatusOr<bool> Queue::multiply(const hone::cuda::MatrixProduct &product) {
  auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<bool> isEnqueued = stream->multiply(product);
  HONE_RETURN_IF_ERROR(explain(isEnqueued.status()));
  if (*isEnqueued && !stream->collects())
    HONE_RETURN_IF_ERROR(follow("cublasLtMatmul", begin));
  return *isEnqueued;
}

absl::Status Queue::exchange(Work::Kind kind, CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  if (bytes == 0)
    return absl::OkStatus();
  auto begin = std::chrono::steady_clock::now();
  HONE_RETURN_IF_ERROR(explain(stream->move(kind, to, from, bytes)));
  if (stream->collects())
    return absl::OkStatus();
  return follow(kind == Work::Kind::AllReduce ? "ncclAllReduce" : "ncclAllGather", begin);
}

/// Lets the GPU count the kernels that have ended, so that a fault can be told from the others.
absl::Status Queue::follow(const char *name, std::chrono::steady_clock::time_point begin) {
  launched.push_back(name);
  CUresult result = context().driver().cuStreamWriteValue32(
      stream->handle(), addressOf(const_cast<uint32_t *>(progress)), static_cast<uint32_t>(launched.size()), 0);
  HONE_RETURN_IF_ERROR(explain(context().check(result, "count kernels that have ended")));
  if (!receiver)
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(waitForAll());
  receiver(name, begin);
  return absl::OkStatus();
}

absl::Status Queue::copy(void *to, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return absl::OkStatus();
  return explain(stream->move(Work::Kind::OnDevice, addressOf(to), addressOf(from), bytes));
}

absl::Status Queue::upload(void *to, const void *from, uint64_t bytes) { return send(addressOf(to), from, bytes); }

/// From the host, whose bytes may change afterwards: a few as an argument of a kernel, more by a copy.
absl::Status Queue::send(CUdeviceptr to, const void *from, uint64_t bytes) {
  if (bytes > hone::cuda::kMostStoredBytes)
    return explain(staging.upload(to, from, bytes));
  if (bytes == 0)
    return absl::OkStatus();
  hone::cuda::StoreBytesArguments args = {static_cast<char *>(pointerTo(to)), static_cast<int32_t>(bytes), {}};
  std::memcpy(args.bytes, from, bytes);
  void *arguments[] = {&args};
  return launch({hone::cuda::kStoreBytesFatbin, "store_bytes"}, {{1, 1, 1}, {hone::cuda::kMostStoredBytes, 1, 1}, 0},
                arguments);
}

absl::Status Queue::fetch(void *to, const void *from, uint64_t bytes) {
  HONE_RETURN_IF_ERROR(explain(staging.download(to, addressOf(from), bytes)));
  return waitForAll();
}

void Queue::beginSampling(const sampling::SamplingOptions &options, std::vector<int32_t> history) {
  sampler.begin(options, std::move(history));
}

absl::Status Queue::sample(size_t output, std::span<const int64_t> shape, uint64_t draw, int64_t &token) {
  auto made = std::ranges::find(results, output, &Output::index);
  uint64_t row = shape.empty() ? 0 : static_cast<uint64_t>(shape.back()) * sizeof(float);
  if (made == results.end() || row == 0 || made->bytes < row)
    return io::invalid("cannot sample a token: the program gave no logits on the GPU");
  bool isInputHere = !isGiven.empty() && isGiven[0] && tokenBytes > 0;
  sampler.setInput(isInputHere ? inputs[0].address() : 0, tokenBytes);
  auto args = sampler.prepare(staging, made->from + made->bytes - row, shape.back(), draw);
  HONE_RETURN_IF_ERROR(explain(args.status()));
  void *arguments[] = {&*args};
  for (const TokenSampler::Launch &each : sampler.launches())
    HONE_RETURN_IF_ERROR(launch({hone::cuda::kSamplingFatbin, each.name}, each.shape, arguments));
  results.clear();
  results.push_back({output, &token, addressOf(args->token), sizeof token});
  sampled = isInputHere ? &token : nullptr;
  return absl::OkStatus();
}

absl::Status Queue::waitForAll() {
  HONE_RETURN_IF_ERROR(explain(staging.flush()));
  launched.clear();
  *progress = 0;
  return absl::OkStatus();
}

/// Says of a fault which kernel it was, and what it means for the caller.
absl::Status Queue::explain(absl::Status status) const {
  if (status.ok() || isUsable())
    return status;
  uint32_t ended = *progress;
  std::string kernel = ended < launched.size() ? cat("kernel '", launched[ended], "'")
                       : stream->collects()    ? "a kernel of a step"
                                               : "a kernel of another session";
  return absl::AbortedError(cat(kernel, " failed on the ", context().properties().name, ": ", context().faultText(),
                                "; what sessions had on the GPU is lost, and this process cannot use it any more"));
}

absl::Status Queue::betweenCalls(absl::FunctionRef<absl::Status()> work) {
  HONE_RETURN_IF_ERROR(checkUsable());
  scope.emplace(context());
  receiver = {}; // of a call that has ended
  absl::Status status = work();
  if (status.ok())
    status = stream->submit(/*isWhole=*/true);
  status = status.ok() ? waitForAll() : explain(std::move(status));
  scope.reset();
  return status;
}

absl::Status Queue::copyElements(const hone_tensor &from, const hone_tensor &to, CopyMeans means) {
  for (CopyStep &step : planCopy(from, to, means)) {
    if (step.width == 0) {
      HONE_RETURN_IF_ERROR(copy(step.copy.to, step.copy.from, step.bytes));
      continue;
    }
    uint32_t blocks = (step.copy.count + hone::cuda::kCopyThreads - 1) / hone::cuda::kCopyThreads;
    void *arguments[] = {&step.copy};
    HONE_RETURN_IF_ERROR(launch({hone::cuda::kStridedCopyFatbin, stridedCopyName(step.width)},
                                {{blocks, 1, 1}, {hone::cuda::kCopyThreads, 1, 1}, 0}, arguments));
  }
  return absl::OkStatus();
}

} // namespace hone::rt::cuda
