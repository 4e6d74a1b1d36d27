// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA graphs of calls that enqueue the same work again, as decode steps do: one launch instead of one for each kernel.

#ifndef HONE_RUNTIME_CUDA_STEP_H
#define HONE_RUNTIME_CUDA_STEP_H

#include "cuda/blas/products.h"
#include "cuda/context.h"
#include "cuda/kernels/kernel_device.h"
#include "cuda/ranks/gpu_ranks.h"

#include <vector>

namespace hone::rt::cuda {

/// A product that a library computes.
struct LibraryProduct {
  const Products *library = nullptr;
  std::shared_ptr<ProductPlan> plan;
  hone::cuda::MatrixProduct product = {};
  uint64_t workspace = 0; // address

  bool operator==(const LibraryProduct &) const = default;
};

/// One thing that a call enqueues.
struct Work {
  enum class Kind { Kernel, Product, ToDevice, ToHost, OnDevice, AllReduce, AllGather };
  Kind kind;
  // Of a kernel:
  Kernel kernel = {};
  hone::cuda::LaunchShape shape = {};
  const std::vector<size_t> *parameters = nullptr; // bytes of each
  std::string arguments;                           // one after the other, aligned to 16 bytes
  LibraryProduct product;                          // of a product
  // Of a copy, an address of the host where `kind` says so, and of what ranks do together, whose part has so many bytes:
  uint64_t to = 0, from = 0, bytes = 0;
};

/// Runs all the work of a call at once. Work that comes a second time is captured as a graph. From the third time on the graph is
/// launched, and only kernels whose arguments or grids differ are updated: those that know the sequence's length. Used by one stream.
class StepGraph {
public:
  /// `ranks` is null where a process runs alone.
  StepGraph(Context &context, CUstream stream, GpuRanks *ranks) : context(context), stream(stream), ranks(ranks) {}
  StepGraph(const StepGraph &) = delete;
  StepGraph &operator=(const StepGraph &) = delete;
  ~StepGraph();

  /// A launch to be enqueued later; the arguments are copied.
  absl::StatusOr<Work> describe(const Kernel &kernel, const hone::cuda::LaunchShape &shape, void **arguments);

  /// Enqueues all of `step`. Only a whole call becomes a graph.
  absl::Status run(std::vector<Work> step, bool isWhole);

private:
  absl::Status enqueue(std::vector<Work> &step);
  absl::Status enqueue(Work &work);
  absl::Status build(std::vector<Work> &step);
  absl::Status capture(std::vector<Work> &step);
  absl::StatusOr<CUgraphNode> latestNode();
  absl::Status change(std::vector<Work> &step);
  void clear();

  Context &context;
  CUstream stream;
  GpuRanks *ranks;
  std::map<CUfunction, std::vector<size_t>> parameterBytes;
  std::vector<Work> latest; // of the graph, or of the call before
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  std::vector<CUgraphNode> nodes; // of the graph: of works that are kernels
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_STEP_H
