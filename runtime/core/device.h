// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime asks of a device whose memory is not the host's. Targets implement it; nothing here knows which there are.

#ifndef HONE_RUNTIME_CORE_DEVICE_H
#define HONE_RUNTIME_CORE_DEVICE_H

#include "core/state_memory.h"
#include "hone/io/manifest.h"
#include "hone/runtime/collectives.h"
#include "hone/sampling/options.h"

#include <chrono>
#include <functional>
#include <memory>

namespace hone::rt {

/// Gets each kernel of a call when it has ended, and when it was enqueued. Its name is valid until the receiver returns.
using LaunchReceiver = std::function<void(const char *name, std::chrono::steady_clock::time_point begin)>;

/// A stream of work, with the memory that its calls leave for those that follow. Used by one call at a time; what a call
/// enqueues runs in that order. Pointers to device memory are aligned to 256 bytes. After a failure of one function the call ends.
class DeviceQueue {
public:
  virtual ~DeviceQueue() = default;

  /// Begins a call with these inputs. Fails where the device was lost in an earlier one. With a receiver, it waits for each kernel.
  virtual absl::Status begin(std::span<const hone_tensor> inputs, LaunchReceiver receiver) = 0;

  /// Ends it: hands outputs over and waits, also for what a failed call enqueued. Memory of the call is given back.
  virtual absl::Status end() = 0;

  /// False once a fault has made the queue unusable.
  virtual bool isUsable() const = 0;

  /// First byte of the module's tensor data.
  virtual const uint8_t *weights() const = 0;

  /// The dense `tensor`, which is input number `index` of the call, on the device. Copied once in a call, and not at all where it
  /// was copied with the same `version`, other than 0, by one before.
  virtual absl::StatusOr<void *> input(size_t index, const hone_tensor &tensor, uint64_t version) = 0;

  /// Memory of output number `index`, whose bytes end() copies to `host`.
  virtual absl::StatusOr<void *> output(size_t index, void *host, uint64_t bytes) = 0;

  /// One piece of memory for each of `bytes`, until the call ends. At most once in a call.
  virtual absl::Status placeSlots(std::span<const uint64_t> bytes, std::span<void *> slots) = 0;

  /// Memory until release(), or the end of the call.
  virtual absl::StatusOr<void *> allocate(uint64_t bytes) = 0;
  virtual void release(void *memory) = 0;

  /// Kernel number `kernel` of the manifest. `shape` is that of hone_rt_launch (hone/runtime/device.h).
  virtual absl::Status launch(int64_t kernel, std::span<const int64_t, 7> shape, void **arguments) = 0;

  virtual absl::Status copy(void *to, const void *from, uint64_t bytes) = 0;
  /// From the host; its bytes may change afterwards.
  virtual absl::Status upload(void *to, const void *from, uint64_t bytes) = 0;
  /// To the host, after all that was enqueued; waits.
  virtual absl::Status fetch(void *to, const void *from, uint64_t bytes) = 0;

  /// Sampling from here on has these options and follows the tokens of `history`, all of the vocabulary; what is sampled belongs to it from
  /// then on.
  virtual void beginSampling(const sampling::SamplingOptions &options, std::vector<int32_t> history) = 0;

  /// Ends what a call enqueues: its outputs are not handed over. From the last row of output `output`, f32 of so many logits a row,
  /// a token is sampled as hone/sampling/sampler.h says, `draw` being the generator's. After end() it is in `token`, or why
  /// there is none: a code of hone/sampling/arithmetic.h. The next call that takes it as its only token finds it on the device.
  virtual absl::Status sample(size_t output, std::span<const int64_t> shape, uint64_t draw, int64_t &token) = 0;

  /// Where the state of the queue's session is.
  virtual StateMemory &stateMemory() = 0;
};

/// The part of a module that is on a device: kernels and weights. Thread-safe.
class Device {
public:
  virtual ~Device() = default;

  /// A kernel by its imported name, or null.
  virtual hone_kernel_fn findKernel(std::string_view name) const = 0;

  /// Connects the devices of all ranks of an artefact for several, which have all opened theirs; once.
  virtual absl::Status joinRanks() = 0;

  /// Fails where the device has no more memory, or is lost and does not come back.
  virtual absl::StatusOr<std::unique_ptr<DeviceQueue>> createQueue() = 0;
};

/// What a device is opened for.
struct DeviceSource {
  std::string file; // path of the manifest's device.file
  const io::DeviceInfo *info;
  std::span<const uint8_t> weights; // tensor data of the weights file, mapped while the device lives
  const hone_collectives *ranks;    // the processes of an artefact for several ranks, else null
};

/// What the library of a target exports as `hone_device_library`. The two share types of C++, so they are of one build.
struct DeviceLibrary {
  const char *version; // HONE_VERSION "+" HONE_DEVICE_INTERFACE (core/device_interface.h)
  absl::StatusOr<std::unique_ptr<Device>> (*open)(const DeviceSource &source);
};

/// libhone_<target>, which is loaded with the first artefact for that target. Fails, in one sentence, where it is missing or of
/// another build.
absl::StatusOr<const DeviceLibrary *> loadDeviceLibrary(std::string_view target);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_DEVICE_H
