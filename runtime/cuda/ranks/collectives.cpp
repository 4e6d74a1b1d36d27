// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks do together is work of the call's stream, and copies on it for operands that do not lie as NCCL takes them: in one piece, and
// all ranks' parts one after the other.

#include "cuda/ranks/collectives.h"

#include "core/call.h"
#include "core/parts.h"
#include "cuda/queue.h"
#include "hone/runtime/collectives.h"

#include <algorithm>

namespace hone::rt::cuda {
namespace {

CUdeviceptr addressOf(const hone_tensor &tensor) { return reinterpret_cast<CUdeviceptr>(tensor.data); }

uint64_t sizeOf(const hone_tensor &tensor) {
  return bytesOf(static_cast<hone_dtype>(tensor.dtype), {tensor.sizes, static_cast<size_t>(tensor.rank)});
}

/// Memory of a queue until the work that is enqueued meanwhile has run.
class Scratch {
public:
  explicit Scratch(Queue &queue) : queue(queue) {}
  ~Scratch() {
    for (void *memory : pieces)
      queue.release(memory);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// A dense tensor like `tensor`, as often as `count`, one after the other.
  absl::StatusOr<hone_tensor> make(const hone_tensor &tensor, int64_t count = 1) {
    HONE_ASSIGN_OR_RETURN(void *memory, queue.allocate(static_cast<uint64_t>(count) * sizeOf(tensor)));
    pieces.push_back(memory);
    return io::denseView(memory, static_cast<hone_dtype>(tensor.dtype),
                         {tensor.sizes, static_cast<size_t>(tensor.rank)});
  }

  /// `tensor` where it is, or a dense copy.
  absl::StatusOr<hone_tensor> makeDense(const hone_tensor &tensor) {
    if (io::isDense(tensor))
      return tensor;
    HONE_ASSIGN_OR_RETURN(hone_tensor copy, make(tensor));
    HONE_RETURN_IF_ERROR(queue.copyElements(tensor, copy, CopyMeans::Any));
    return copy;
  }

private:
  Queue &queue;
  std::vector<void *> pieces;
};

absl::Status allReduce(Queue &queue, const hone_tensor &from, const hone_tensor &to) {
  Scratch scratch(queue);
  HONE_ASSIGN_OR_RETURN(hone_tensor terms, scratch.makeDense(from));
  hone_tensor sum = to;
  if (!io::isDense(to)) {
    HONE_ASSIGN_OR_RETURN(sum, scratch.make(to));
  }
  HONE_RETURN_IF_ERROR(queue.exchange(Work::Kind::AllReduce, addressOf(sum), addressOf(terms), sizeOf(from)));
  return io::isDense(to) ? absl::OkStatus() : queue.copyElements(sum, to, CopyMeans::Any);
}

absl::Status allGather(Queue &queue, const hone_tensor &from, const hone_tensor &to, int64_t axis) {
  Scratch scratch(queue);
  HONE_ASSIGN_OR_RETURN(hone_tensor part, scratch.makeDense(from));
  bool liesTogether = std::all_of(to.sizes, to.sizes + axis, [](int64_t size) { return size == 1; });
  if (liesTogether && io::isDense(to))
    return queue.exchange(Work::Kind::AllGather, addressOf(to), addressOf(part), sizeOf(from));
  int64_t ranks = to.sizes[axis] / std::max<int64_t>(from.sizes[axis], 1);
  HONE_ASSIGN_OR_RETURN(hone_tensor gathered, scratch.make(from, ranks));
  HONE_RETURN_IF_ERROR(queue.exchange(Work::Kind::AllGather, addressOf(gathered), addressOf(part), sizeOf(from)));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    hone_tensor one = gathered;
    one.data = static_cast<char *>(gathered.data) + rank * static_cast<int64_t>(sizeOf(from));
    HONE_RETURN_IF_ERROR(queue.copyElements(one, partOf(to, axis, from.sizes[axis], rank), CopyMeans::Any));
  }
  return absl::OkStatus();
}

Queue &queueOf(hone_call *call) { return static_cast<Queue &>(*CallContext::of(call).queue()); }

void allReduceKernel(hone_call *call, const hone_tensor *operands, const int64_t *, const double *) {
  runOrLeave(call, [=] { return allReduce(queueOf(call), operands[0], operands[1]); });
}

void allGatherKernel(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOrLeave(call, [=] { return allGather(queueOf(call), operands[0], operands[1], ints[0]); });
}

void allSliceKernel(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *) {
  runOrLeave(call, [=] {
    Queue &queue = queueOf(call);
    hone_tensor mine = partOf(operands[0], ints[0], operands[1].sizes[ints[0]], queue.rank());
    return queue.copyElements(mine, operands[1], CopyMeans::Any);
  });
}

} // namespace

hone_kernel_fn findCollective(std::string_view name) {
  return name == "cuda." HONE_ALL_REDUCE   ? allReduceKernel
         : name == "cuda." HONE_ALL_GATHER ? allGatherKernel
         : name == "cuda." HONE_ALL_SLICE  ? allSliceKernel
                                           : nullptr;
}

} // namespace hone::rt::cuda
