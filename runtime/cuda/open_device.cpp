// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module's part on a GPU, which comes back after a fault.

#include "cuda/open_device.h"

#include "cuda/kernels/kernel_table.h"
#include "cuda/queue.h"
#include "hone/io/file.h"

namespace hone::rt::cuda {
namespace {

class CudaDevice final : public Device {
public:
  explicit CudaDevice(const DeviceSource &source) : source(source) {}

  hone_kernel_fn findKernel(std::string_view name) const override { return hone::cuda::findKernel(name); }

  absl::StatusOr<std::unique_ptr<DeviceQueue>> createQueue() override {
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedImage> usable, load());
    return Queue::create(std::move(usable));
  }

  /// What is loaded, or what is loaded again where a fault took it away.
  absl::StatusOr<std::shared_ptr<const LoadedImage>> load() {
    std::lock_guard lock(mutex);
    if (image && !image->context()->isLost())
      return image;
    image.reset();
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::get());
    HONE_ASSIGN_OR_RETURN(std::string fatbin, io::readFile(source.file));
    HONE_ASSIGN_OR_RETURN(image, LoadedImage::load(std::move(context), fatbin, source));
    return image;
  }

private:
  DeviceSource source;
  std::mutex mutex;
  std::shared_ptr<const LoadedImage> image;
};

} // namespace

absl::StatusOr<std::unique_ptr<Device>> openDevice(const DeviceSource &source) {
  auto device = std::make_unique<CudaDevice>(source);
  HONE_RETURN_IF_ERROR(device->load().status());
  return device;
}

} // namespace hone::rt::cuda

extern "C" __attribute__((visibility("default"))) const hone::rt::DeviceLibrary hone_device_library;
const hone::rt::DeviceLibrary hone_device_library = {HONE_VERSION, hone::rt::cuda::openDevice};
