// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a GPU in pages without addresses, which its sessions share.

#ifndef HONE_RUNTIME_CUDA_PAGE_POOL_H
#define HONE_RUNTIME_CUDA_PAGE_POOL_H

#include "cuda/driver.h"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace hone::rt::cuda {

class Context;
class PagePool;

/// A page that goes back to its pool with the last range that has it. Ranges that share one do not write to it.
class Page {
public:
  Page(PagePool &pool, CUmemGenericAllocationHandle handle) : pool(pool), handle(handle) {}
  Page(const Page &) = delete;
  Page &operator=(const Page &) = delete;
  ~Page();

  CUmemGenericAllocationHandle get() const { return handle; }

private:
  PagePool &pool;
  CUmemGenericAllocationHandle handle;
};

using Pages = std::vector<std::shared_ptr<Page>>;

/// Thread-safe. Functions need the context to be current (Context::Scope), but for those that give back. Pages that are given back are
/// kept for who asks next.
class PagePool {
public:
  explicit PagePool(Context &context) : context(context) {}
  PagePool(const PagePool &) = delete;
  PagePool &operator=(const PagePool &) = delete;

  /// Asks the driver for the size of pages, before all else.
  absl::Status open(CUdevice device);

  uint64_t pageBytes() const { return bytes; }

  /// So many pages, of what was given back and of new ones; what was in them is undefined. Fails where the GPU has not so much
  /// memory, `what` it was for in the message, and takes none then.
  absl::StatusOr<Pages> take(uint64_t count, std::string_view what);

  /// Leaves the driver all pages that nobody has; false where there are none.
  bool trim();

  /// Lets the GPU touch pages that were mapped.
  CUmemAccessDesc access() const { return {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}; }

private:
  friend class Page;
  bool takeUnused(CUmemGenericAllocationHandle &page);
  void give(CUmemGenericAllocationHandle page);

  Context &context;
  CUmemAllocationProp properties = {};
  size_t bytes = 0;
  std::mutex mutex;
  std::vector<CUmemGenericAllocationHandle> unused;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_PAGE_POOL_H
