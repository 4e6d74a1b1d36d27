// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module's part on a GPU, which comes back after a fault.

#include "cuda/open_device.h"

#include "core/device_interface.h"
#include "cuda/kernels/kernel_table.h"
#include "cuda/queue.h"
#include "cuda/ranks/collectives.h"
#include "hone/io/file.h"

namespace hone::rt::cuda {
namespace {

class CudaDevice final : public Device {
public:
  CudaDevice(const DeviceSource &source, int number) : source(source), number(number) {}

  hone_kernel_fn findKernel(std::string_view name) const override {
    hone_kernel_fn collective = source.ranks ? findCollective(name) : nullptr;
    return collective ? collective : hone::cuda::findKernel(name);
  }

  absl::Status joinRanks() override {
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedImage> usable, load());
    return GpuRanks::connect(usable->context(), *source.ranks).status();
  }

  absl::StatusOr<std::unique_ptr<DeviceQueue>> createQueue() override {
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedImage> usable, load());
    GpuRanks *ranks = nullptr;
    if (source.ranks) {
      HONE_ASSIGN_OR_RETURN(ranks, GpuRanks::connect(usable->context(), *source.ranks));
    }
    return Queue::create(std::move(usable), ranks);
  }

  /// What is loaded. Fails where a fault took it away.
  absl::StatusOr<std::shared_ptr<const LoadedImage>> load() {
    std::lock_guard lock(mutex);
    if (image && !image->context()->isLost())
      return image;
    image.reset();
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::get(number));
    HONE_ASSIGN_OR_RETURN(std::string fatbin, io::readFile(source.file));
    HONE_ASSIGN_OR_RETURN(image, LoadedImage::load(std::move(context), fatbin, source));
    return image;
  }

private:
  DeviceSource source;
  int number; // of the GPU
  std::mutex mutex;
  std::shared_ptr<const LoadedImage> image;
};

} // namespace

absl::StatusOr<std::unique_ptr<Device>> openDevice(const DeviceSource &source) {
  HONE_ASSIGN_OR_RETURN(int number, chooseGpu(source.ranks));
  auto device = std::make_unique<CudaDevice>(source, number);
  HONE_RETURN_IF_ERROR(device->load().status());
  if (source.ranks) // here, as others would wait for a rank that has no library
    HONE_RETURN_IF_ERROR(Nccl::get().status());
  return device;
}

} // namespace hone::rt::cuda

extern "C" __attribute__((visibility("default"))) const hone::rt::DeviceLibrary hone_device_library;
const hone::rt::DeviceLibrary hone_device_library = {HONE_VERSION "+" HONE_DEVICE_INTERFACE,
                                                     hone::rt::cuda::openDevice};
