// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses on a GPU for tensors that grow together, and the pages that are mapped there.

#ifndef HONE_RUNTIME_CUDA_PAGED_RANGE_H
#define HONE_RUNTIME_CUDA_PAGED_RANGE_H

#include "core/state_memory.h"
#include "cuda/context.h"

#include "absl/functional/function_ref.h"

#include <map>

namespace hone::rt::cuda {

/// Whether two are the same slot with the same sizes along the axes that do not grow.
bool hasSameSizes(const GrowingTensor &a, const GrowingTensor &b);

/// Position after position of several tensors: what all of them have of one position is a KV row, and rows are contiguous.
/// Growing maps pages after those that are there, so nothing moves (as vAttention does: Prabhu et al., 2024). As many addresses are
/// reserved as the GPU has memory: no sequence can become longer, whatever the model says of its longest.
///
/// Functions, and the end of the object, need that nothing is enqueued which touches a page, but for extend(). Used by one session.
class PagedRange {
public:
  static absl::StatusOr<std::shared_ptr<PagedRange>> create(std::shared_ptr<Context> context,
                                                            std::span<const GrowingTensor> tensors);
  PagedRange(const PagedRange &) = delete;
  PagedRange &operator=(const PagedRange &) = delete;
  ~PagedRange();

  /// Whether the tensor is one of those.
  bool holds(const GrowingTensor &tensor) const;

  /// Has room for so many positions afterwards. Fails where the GPU has not so much memory, and is as it was then.
  absl::Status extend(int64_t positions);

  /// Those whose bytes all belong to positions before this one, and those that have any of them.
  size_t wholePages(int64_t positions) const;
  size_t pagesOf(int64_t positions) const;

  size_t pageCount() const { return pages.size(); }
  /// Whether another range has that page, too.
  bool sharesPage(size_t page) const { return pages[page].use_count() > 1; }

  /// Other addresses for the same tensors, where the first `count` pages are. Those that `isShared` names are this range's own; the others
  /// hold what this range has there once the copies that `copy` enqueues are done. Fails where the GPU has not so much memory.
  absl::StatusOr<std::shared_ptr<PagedRange>>
  fork(size_t count, absl::FunctionRef<bool(size_t page)> isShared,
       absl::FunctionRef<absl::Status(CUdeviceptr to, CUdeviceptr from, uint64_t bytes)> copy) const;

  /// All positions of a tensor that there is room for.
  hone_tensor view(const GrowingTensor &tensor) const;

private:
  struct Part {
    GrowingTensor tensor;
    uint64_t offset; // in a KV row
  };

  explicit PagedRange(std::shared_ptr<Context> context) : owner(std::move(context)) {}
  absl::Status reserve();
  absl::Status checkUsable() const;
  absl::Status map(std::span<const std::shared_ptr<Page>> fresh);
  void unmap(size_t kept);

  std::shared_ptr<Context> owner;
  std::map<size_t, Part> parts; // by their slots
  uint64_t rowBytes = 0;
  CUdeviceptr base = 0;
  uint64_t reserved = 0; // bytes
  Pages pages;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_PAGED_RANGE_H
