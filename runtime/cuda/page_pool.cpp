// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages from the driver, and back.

#include "cuda/context.h"

#include <utility>

namespace hone::rt::cuda {

absl::Status PagePool::open(CUdevice device) {
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return context.check(
      context.driver().cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
      "ask the GPU for its size of pages");
}

Page::~Page() { pool.give(handle); }

bool PagePool::takeUnused(CUmemGenericAllocationHandle &page) {
  std::lock_guard lock(mutex);
  if (unused.empty())
    return false;
  page = unused.back();
  unused.pop_back();
  return true;
}

absl::StatusOr<Pages> PagePool::take(uint64_t count, std::string_view what) {
  const Driver &driver = context.driver();
  Pages pages;
  bool isTrimmed = false;
  while (pages.size() < count) {
    CUmemGenericAllocationHandle page = 0;
    CUresult result = takeUnused(page) ? CUDA_SUCCESS : driver.cuMemCreate(&page, bytes, &properties, 0);
    if (result == CUDA_SUCCESS) {
      pages.push_back(std::make_shared<Page>(*this, page));
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY && !isTrimmed) { // what calls left may be enough
      driver.cuMemPoolTrimTo(context.pool(), 0);
      isTrimmed = true;
    } else {
      pages.clear();
      trim();
      return result == CUDA_ERROR_OUT_OF_MEMORY ? context.outOfMemory(count * bytes, what)
                                                : context.check(result, "create a page of GPU memory");
    }
  }
  return pages;
}

void PagePool::give(CUmemGenericAllocationHandle page) {
  std::lock_guard lock(mutex);
  unused.push_back(page);
}

bool PagePool::trim() {
  std::lock_guard lock(mutex);
  for (CUmemGenericAllocationHandle page : unused)
    context.driver().cuMemRelease(page);
  return !std::exchange(unused, {}).empty();
}

} // namespace hone::rt::cuda
