// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layout of KV rows, and mapping of pages.

#include "cuda/paged_range.h"

#include "hone/io/dtype.h"

#include <algorithm>
#include <limits>

namespace hone::rt::cuda {
namespace {

using io::cat;

/// What parts of a KV row are aligned to, in bytes: the widest access of a kernel, and of a copy by descriptors.
constexpr uint64_t kPartAlignment = 16;

uint64_t divideUp(uint64_t value, uint64_t divisor) { return value / divisor + (value % divisor != 0); }

/// Bytes of one position, or more than any GPU has where that is no number.
uint64_t positionBytes(const GrowingTensor &tensor) {
  constexpr uint64_t kTooMuch = uint64_t{1} << 60;
  std::vector<int64_t> sizes = tensor.sizes;
  sizes[tensor.axis] = 1;
  std::optional<int64_t> bytes = io::tensorBytes(tensor.dtype, sizes);
  return divideUp(std::min(bytes ? static_cast<uint64_t>(*bytes) : kTooMuch, kTooMuch), kPartAlignment) *
         kPartAlignment;
}

} // namespace

bool hasSameSizes(const GrowingTensor &a, const GrowingTensor &b) {
  std::vector<int64_t> sizes = a.sizes;
  sizes[a.axis] = b.sizes[a.axis];
  return a.slot == b.slot && sizes == b.sizes;
}

absl::StatusOr<std::shared_ptr<PagedRange>> PagedRange::create(std::shared_ptr<Context> context,
                                                               std::span<const GrowingTensor> tensors) {
  std::shared_ptr<PagedRange> range(new PagedRange(std::move(context)));
  for (const GrowingTensor &tensor : tensors) {
    range->parts.emplace(tensor.slot, Part{tensor, range->rowBytes});
    range->rowBytes = std::min(range->rowBytes + positionBytes(tensor), uint64_t{1} << 60);
  }
  range->rowBytes = std::max(range->rowBytes, kPartAlignment); // where sizes are 0
  HONE_RETURN_IF_ERROR(range->reserve());
  return range;
}

absl::Status PagedRange::reserve() {
  uint64_t page = owner->pages().pageBytes();
  uint64_t bytes = divideUp(static_cast<uint64_t>(owner->properties().memoryBytes), page) * page;
  HONE_RETURN_IF_ERROR(owner->check(owner->driver().cuMemAddressReserve(&base, bytes, 0, 0, 0),
                                    cat("reserve ", bytes, " addresses of the GPU for the state of a session")));
  reserved = bytes;
  return absl::OkStatus();
}

PagedRange::~PagedRange() {
  Context::Scope scope(*owner);
  unmap(0);
  if (reserved > 0)
    owner->driver().cuMemAddressFree(base, reserved);
}

bool PagedRange::holds(const GrowingTensor &tensor) const {
  auto part = parts.find(tensor.slot);
  return part != parts.end() && hasSameSizes(part->second.tensor, tensor);
}

absl::Status PagedRange::checkUsable() const {
  if (owner->isLost())
    return absl::UnavailableError(cat("cannot go on after the fault of a kernel: ", owner->faultText()));
  return absl::OkStatus();
}

size_t PagedRange::wholePages(int64_t positions) const {
  return static_cast<uint64_t>(positions) * rowBytes / owner->pages().pageBytes();
}

size_t PagedRange::pagesOf(int64_t positions) const {
  return divideUp(static_cast<uint64_t>(positions) * rowBytes, owner->pages().pageBytes());
}

absl::StatusOr<std::shared_ptr<PagedRange>>
PagedRange::fork(size_t count, absl::FunctionRef<bool(size_t page)> isShared,
                 absl::FunctionRef<absl::Status(CUdeviceptr to, CUdeviceptr from, uint64_t bytes)> copy) const {
  std::shared_ptr<PagedRange> other(new PagedRange(owner));
  other->parts = parts;
  other->rowBytes = rowBytes;
  HONE_RETURN_IF_ERROR(other->reserve());
  std::vector<size_t> copied;
  HONE_RETURN_IF_ERROR(checkUsable());
  for (size_t i = 0; i < count; ++i)
    if (!isShared(i))
      copied.push_back(i);
  HONE_ASSIGN_OR_RETURN(Pages fresh, owner->pages().take(copied.size(), "a copy of a session's state"));
  Pages all(pages.begin(), pages.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < copied.size(); ++i)
    all[copied[i]] = std::move(fresh[i]);
  HONE_RETURN_IF_ERROR(other->map(all));
  uint64_t page = owner->pages().pageBytes();
  for (size_t i : copied)
    HONE_RETURN_IF_ERROR(copy(other->base + i * page, base + i * page, page));
  return other;
}

absl::Status PagedRange::extend(int64_t positions) {
  HONE_RETURN_IF_ERROR(checkUsable());
  uint64_t page = owner->pages().pageBytes(), count = static_cast<uint64_t>(positions);
  std::string what = cat("a session's state of ", positions, " positions");
  if (count > reserved / rowBytes)
    return owner->outOfMemory(count > std::numeric_limits<uint64_t>::max() / rowBytes
                                  ? std::numeric_limits<uint64_t>::max()
                                  : count * rowBytes,
                              what);
  uint64_t wanted = divideUp(count * rowBytes, page);
  if (wanted <= pages.size())
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Pages fresh, owner->pages().take(wanted - pages.size(), what));
  return map(fresh);
}

/// Maps pages after those that are there, or none of them.
absl::Status PagedRange::map(std::span<const std::shared_ptr<Page>> fresh) {
  constexpr std::string_view what = "map GPU memory for the state of a session";
  const Driver &driver = owner->driver();
  uint64_t page = owner->pages().pageBytes();
  size_t before = pages.size();
  absl::Status status;
  for (size_t i = 0; status.ok() && i < fresh.size(); ++i) {
    status = owner->check(driver.cuMemMap(base + pages.size() * page, page, 0, fresh[i]->get(), 0), what);
    if (status.ok())
      pages.push_back(fresh[i]);
  }
  CUmemAccessDesc access = owner->pages().access();
  if (status.ok())
    status = owner->check(driver.cuMemSetAccess(base + before * page, fresh.size() * page, &access, 1), what);
  if (!status.ok())
    unmap(before);
  return status;
}

/// Gives the pages after the first `kept` back.
void PagedRange::unmap(size_t kept) {
  uint64_t page = owner->pages().pageBytes();
  for (size_t i = kept; i < pages.size(); ++i)
    owner->driver().cuMemUnmap(base + i * page, page);
  pages.resize(kept);
}

hone_tensor PagedRange::view(const GrowingTensor &tensor) const {
  std::vector<int64_t> position = tensor.sizes;
  position[tensor.axis] = 1;
  auto *data = reinterpret_cast<void *>(base + parts.at(tensor.slot).offset);
  hone_tensor view = io::denseView(data, tensor.dtype, position);
  view.sizes[tensor.axis] = static_cast<int64_t>(pages.size() * owner->pages().pageBytes() / rowBytes);
  view.strides[tensor.axis] = static_cast<int64_t>(rowBytes) / io::dtypeBytes(tensor.dtype);
  return view;
}

} // namespace hone::rt::cuda
