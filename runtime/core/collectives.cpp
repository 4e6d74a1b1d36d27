// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that ranks run together, on the CPU. Nothing is allocated for dense operands, and parts that lie together.

#include "core/call.h"
#include "core/communicator.h"
#include "core/parts.h"

#include <algorithm>

namespace hone::rt {
namespace {

int64_t bytesOf(const hone_tensor &tensor) {
  return io::elementCount(tensor) * io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
}

/// The elements of `tensor` in order: where they are, or in `copy`.
absl::StatusOr<const void *> readDense(const hone_tensor &tensor, io::Array &copy) {
  if (io::isDense(tensor))
    return tensor.data;
  HONE_ASSIGN_OR_RETURN(copy, io::Array::copyOf(tensor));
  return static_cast<const void *>(copy.data());
}

absl::Status allReduce(Communicator &ranks, const hone_tensor &from, const hone_tensor &to) {
  io::Array copy, sum;
  HONE_ASSIGN_OR_RETURN(const void *elements, readDense(from, copy));
  std::span<const float> floats(static_cast<const float *>(elements), static_cast<size_t>(io::elementCount(from)));
  if (io::isDense(to))
    return ranks.allReduce(floats, static_cast<float *>(to.data));
  HONE_ASSIGN_OR_RETURN(sum, io::Array::create(HONE_F32, {to.sizes, to.sizes + to.rank}));
  HONE_RETURN_IF_ERROR(ranks.allReduce(floats, sum.as<float>().data()));
  io::copyElements(sum.view(), to);
  return absl::OkStatus();
}

absl::Status allGather(Communicator &ranks, const hone_tensor &from, const hone_tensor &to, int64_t axis) {
  io::Array copy, all;
  HONE_ASSIGN_OR_RETURN(const void *elements, readDense(from, copy));
  bool liesTogether = std::all_of(to.sizes, to.sizes + axis, [](int64_t size) { return size == 1; });
  if (liesTogether && io::isDense(to))
    return ranks.allGather(elements, to.data, bytesOf(from));
  HONE_ASSIGN_OR_RETURN(all, io::Array::create(HONE_U8, {ranks.ranks(), bytesOf(from)}));
  HONE_RETURN_IF_ERROR(ranks.allGather(elements, all.data(), bytesOf(from)));
  std::span<const int64_t> sizes(from.sizes, static_cast<size_t>(from.rank));
  for (int64_t rank = 0; rank < ranks.ranks(); ++rank)
    io::copyElements(io::denseView(all.data() + rank * bytesOf(from), static_cast<hone_dtype>(from.dtype), sizes),
                     partOf(to, axis, from.sizes[axis], rank));
  return absl::OkStatus();
}

void allReduceKernel(hone_call *call, const hone_tensor *operands, const int64_t *, const double *) {
  runOrLeave(call, [=] { return allReduce(*Communicator::current(), operands[0], operands[1]); });
}

void allGatherKernel(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOrLeave(call, [=] { return allGather(*Communicator::current(), operands[0], operands[1], ints[0]); });
}

void allSliceKernel(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  io::copyElements(partOf(operands[0], ints[0], operands[1].sizes[ints[0]], Communicator::current()->rank()),
                   operands[1]);
}

} // namespace

hone_kernel_fn findCollective(std::string_view name) {
  return name == "hone." HONE_ALL_REDUCE   ? allReduceKernel
         : name == "hone." HONE_ALL_GATHER ? allGatherKernel
         : name == "hone." HONE_ALL_SLICE  ? allSliceKernel
                                           : nullptr;
}

} // namespace hone::rt
