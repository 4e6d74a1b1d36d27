// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of steps: captured once, changed where a step differs from the one before.

#include "cuda/step.h"

#include <algorithm>

namespace hone::rt::cuda {
namespace {

using hone::cuda::LaunchShape;
using io::cat;

constexpr size_t kArgumentAlignment = 16;

bool sameShape(const LaunchShape &a, const LaunchShape &b) {
  return std::ranges::equal(a.grid, b.grid) && std::ranges::equal(a.block, b.block) && a.shared == b.shared;
}

/// True where a graph of `a` can become one of `b`: the same kernels and copies in the same order.
bool isAlike(const Work &a, const Work &b) {
  return a.kind == b.kind && a.kernel.function == b.kernel.function && a.to == b.to && a.from == b.from &&
         a.bytes == b.bytes && a.product == b.product;
}

bool areAlike(const std::vector<Work> &a, const std::vector<Work> &b) { return std::ranges::equal(a, b, isAlike); }

/// Pointers to the arguments of a kernel, as the driver takes them.
std::vector<void *> pointersTo(Work &work) {
  std::vector<void *> pointers;
  size_t offset = 0;
  for (size_t bytes : *work.parameters) {
    pointers.push_back(work.arguments.data() + offset);
    offset += (bytes + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
  }
  return pointers;
}

} // namespace

StepGraph::~StepGraph() { clear(); }

void StepGraph::clear() {
  if (!context.isLost()) {
    Context::Scope scope(context);
    if (executable)
      context.driver().cuGraphExecDestroy(executable);
    if (graph)
      context.driver().cuGraphDestroy(graph);
  }
  executable = nullptr;
  graph = nullptr;
  nodes.clear();
}

absl::StatusOr<Work> StepGraph::describe(const Kernel &kernel, const LaunchShape &shape, void **arguments) {
  auto [known, isNew] = parameterBytes.try_emplace(kernel.function);
  size_t offset = 0, bytes = 0;
  // There is no count of parameters: the first that does not exist is an invalid value.
  while (isNew &&
         context.driver().cuFuncGetParamInfo(kernel.function, known->second.size(), &offset, &bytes) == CUDA_SUCCESS)
    known->second.push_back(bytes);
  Work work = {Work::Kind::Kernel, kernel, shape, &known->second, {}, {}, 0, 0, 0};
  for (size_t i = 0; i < known->second.size(); ++i) {
    work.arguments.append(static_cast<const char *>(arguments[i]), known->second[i]);
    work.arguments.resize((work.arguments.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment);
  }
  return work;
}

absl::Status StepGraph::enqueue(Work &work) {
  const Driver &driver = context.driver();
  switch (work.kind) {
  case Work::Kind::Kernel:
    return context.launch(work.kernel, work.shape, stream, pointersTo(work).data());
  case Work::Kind::Product: {
    const auto &[library, plan, product, workspace] = work.product;
    cublasStatus_t status = library->enqueue(*plan, product, reinterpret_cast<void *>(workspace), stream);
    return status == CUBLAS_STATUS_SUCCESS
               ? absl::OkStatus()
               : absl::UnavailableError(cat("cannot multiply by cuBLASLt: ", library->textOf(status)));
  }
  case Work::Kind::ToDevice:
    return context.check(
        driver.cuMemcpyHtoDAsync(work.to, reinterpret_cast<const void *>(work.from), work.bytes, stream),
        "copy to the GPU");
  case Work::Kind::ToHost:
    return context.check(driver.cuMemcpyDtoHAsync(reinterpret_cast<void *>(work.to), work.from, work.bytes, stream),
                         "copy from the GPU");
  case Work::Kind::OnDevice:
    return context.check(driver.cuMemcpyDtoDAsync(work.to, work.from, work.bytes, stream), "copy on the GPU");
  case Work::Kind::AllReduce:
    return ranks->allReduce(work.from, work.to, work.bytes / sizeof(float), stream);
  case Work::Kind::AllGather:
    return ranks->allGather(work.from, work.to, work.bytes, stream);
  }
  return absl::OkStatus();
}

absl::Status StepGraph::enqueue(std::vector<Work> &step) {
  for (Work &work : step)
    HONE_RETURN_IF_ERROR(enqueue(work));
  return absl::OkStatus();
}

/// The node of a kernel that was captured last: all that what comes next depends on.
absl::StatusOr<CUgraphNode> StepGraph::latestNode() {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *captured = nullptr;
  size_t count = 0;
  HONE_RETURN_IF_ERROR(context.check(
      context.driver().cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &captured, nullptr, &count),
      "record a step"));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1)
    return absl::InternalError(cat("cannot record a step: work of one stream has ", count, " ends"));
  return *captured;
}

absl::Status StepGraph::capture(std::vector<Work> &step) {
  for (Work &work : step) {
    HONE_RETURN_IF_ERROR(enqueue(work));
    CUgraphNode node = nullptr; // libraries may leave several ends
    if (work.kind == Work::Kind::Kernel) {
      HONE_ASSIGN_OR_RETURN(node, latestNode());
    }
    nodes.push_back(node);
  }
  return absl::OkStatus();
}

absl::Status StepGraph::build(std::vector<Work> &step) {
  const Driver &driver = context.driver();
  HONE_RETURN_IF_ERROR(
      context.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "record a step"));
  absl::Status status = capture(step);
  HONE_RETURN_IF_ERROR(context.check(driver.cuStreamEndCapture(stream, &graph), "record a step"));
  HONE_RETURN_IF_ERROR(status);
  return context.check(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), "prepare the graph of a step");
}

/// Gives the graph's kernels the arguments and grids of `step`.
absl::Status StepGraph::change(std::vector<Work> &step) {
  for (size_t i = 0; i < step.size(); ++i) {
    Work &work = step[i];
    if (work.kind != Work::Kind::Kernel ||
        (work.arguments == latest[i].arguments && sameShape(work.shape, latest[i].shape)))
      continue;
    std::vector<void *> arguments = pointersTo(work);
    const auto &[grid, block, shared] = work.shape;
    CUgraphKernelParams changed = {work.kernel.function,
                                   {grid[0], grid[1], grid[2]},
                                   {block[0], block[1], block[2]},
                                   shared,
                                   arguments.data(),
                                   nullptr,
                                   nullptr,
                                   nullptr};
    HONE_RETURN_IF_ERROR(context.check(context.driver().cuGraphExecKernelNodeSetParams(executable, nodes[i], &changed),
                                       "change the graph of a step"));
  }
  return absl::OkStatus();
}

absl::Status StepGraph::run(std::vector<Work> step, bool isWhole) {
  bool isAgain = isWhole && !step.empty() && areAlike(step, latest);
  absl::Status status;
  if (!isAgain) {
    if (isWhole)
      clear();
    status = enqueue(step);
  } else {
    status = executable ? change(step) : build(step);
    if (status.ok())
      status = context.check(context.driver().cuGraphLaunch(executable, stream), "launch the graph of a step");
  }
  if (!status.ok())
    clear();
  if (isWhole)
    latest = status.ok() ? std::move(step) : std::vector<Work>();
  return status;
}

} // namespace hone::rt::cuda
