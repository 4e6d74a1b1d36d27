// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages from the driver, and back.

#include "cuda/page_pool.h"

#include "cuda/paged_range.h"

#include <utility>

namespace hone::rt::cuda {

absl::Status PagePool::open(CUdevice device) {
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return context.check(
      context.driver().cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
      "ask the GPU for its size of pages");
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PagePool::take(uint64_t count, std::string_view what) {
  const Driver &driver = context.driver();
  std::lock_guard lock(mutex);
  uint64_t kept = std::min<uint64_t>(count, unused.size());
  std::vector<CUmemGenericAllocationHandle> pages(unused.end() - static_cast<ptrdiff_t>(kept), unused.end());
  unused.resize(unused.size() - kept);
  bool isTrimmed = false;
  while (pages.size() < count) {
    CUmemGenericAllocationHandle page = 0;
    CUresult result = driver.cuMemCreate(&page, bytes, &properties, 0);
    if (result == CUDA_SUCCESS) {
      pages.push_back(page);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY && !isTrimmed) { // what calls left may be enough
      driver.cuMemPoolTrimTo(context.pool(), 0);
      isTrimmed = true;
    } else {
      unused.insert(unused.end(), pages.begin(), pages.end());
      release();
      return result == CUDA_ERROR_OUT_OF_MEMORY ? context.outOfMemory(count * bytes, what)
                                                : context.check(result, "create a page of GPU memory");
    }
  }
  return pages;
}

void PagePool::give(std::span<const CUmemGenericAllocationHandle> pages) {
  std::lock_guard lock(mutex);
  unused.insert(unused.end(), pages.begin(), pages.end());
  if (context.isLost())
    release();
}

void PagePool::enter(PagedRange &range) {
  std::lock_guard lock(changes);
  ranges.insert(&range);
}

void PagePool::leave(PagedRange &range) {
  std::lock_guard lock(changes);
  ranges.erase(&range);
  range.giveBack();
}

void PagePool::abandon() {
  std::lock_guard lock(changes);
  for (PagedRange *range : ranges)
    range->giveBack();
  trim();
}

bool PagePool::release() {
  for (CUmemGenericAllocationHandle page : unused)
    context.driver().cuMemRelease(page);
  return !std::exchange(unused, {}).empty();
}

bool PagePool::trim() {
  std::lock_guard lock(mutex);
  return release();
}

} // namespace hone::rt::cuda
