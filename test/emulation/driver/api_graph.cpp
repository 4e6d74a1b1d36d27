// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: recording of streams, and graphs.

#include "driver/api.h"

using namespace hone::emulation;

namespace {

constexpr int kTopologyChanged = 2; // CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
constexpr int kUpdateError = 1;

std::vector<Operation> operationsOf(const Graph &graph) {
  std::vector<Operation> operations;
  for (const auto &node : graph.nodes)
    operations.push_back(*node);
  return operations;
}

std::vector<const void *> handlesOf(const Graph &graph) {
  std::vector<const void *> handles;
  for (const auto &node : graph.nodes)
    handles.push_back(node.get());
  return handles;
}

/// Forgets the recording on all streams that belong to it, and its events.
void detach(Context &context, const std::shared_ptr<Capture> &capture) {
  for (auto &[handle, stream] : context.streams)
    if (stream->capture == capture)
      stream->capture.reset();
  for (auto &[handle, event] : context.events)
    if (event->capture == capture)
      event->capture.reset(), event->stream = nullptr;
}

bool isJoined(const Capture &capture) {
  for (const auto &[stream, fork] : capture.forks)
    if (stream != capture.origin && fork.joined < fork.operations)
      return false;
  return true;
}

} // namespace

HONE_DRIVER_API cuStreamBeginCapture_v2(void *handle, int mode) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr)
    return call.status;
  if (stream == &call.context->defaultStream)
    return kStreamCaptureUnsupported;
  if (stream->capture || mode < 0 || mode > 2)
    return kInvalidValue;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = static_cast<Capture::Mode>(mode);
  stream->capture->thread = std::this_thread::get_id();
  return kSuccess;
}

HONE_DRIVER_API cuStreamEndCapture(void *handle, Graph **graph) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr)
    return call.status;
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream)
    return kStreamCaptureUnmatched;
  *graph = nullptr;
  detach(*call.context, capture);
  if (capture->invalidated)
    return kStreamCaptureInvalidated;
  if (!isJoined(*capture))
    return kStreamCaptureUnjoined;
  auto created = std::make_unique<Graph>();
  created->context = call.context;
  created->nodes = std::move(capture->operations);
  *graph = keep(call.context->graphs, std::move(created));
  return kSuccess;
}

HONE_DRIVER_API cuStreamIsCapturing(void *handle, int *status) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream != nullptr)
    *status = !stream->capture ? 0 : stream->capture->invalidated ? 2 : 1;
  return call.status;
}

HONE_DRIVER_API cuStreamGetCaptureInfo_v3(void *handle, int *status, uint64_t *id, Graph **graph,
                                          const Operation *const **nodes, const void **edges, size_t *count) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr)
    return call.status;
  if (id != nullptr || graph != nullptr || edges != nullptr || nodes == nullptr || count == nullptr)
    return kNotSupported;
  *status = !stream->capture ? 0 : stream->capture->invalidated ? 2 : 1;
  *nodes = nullptr;
  *count = 0;
  if (*status != 1)
    return kSuccess;
  if (stream->capture->forks.size() > 1) // what was joined is not known by its nodes
    return kNotSupported;
  const Capture::Fork &fork = stream->capture->forks[stream];
  *nodes = &fork.latest;
  *count = fork.latest != nullptr ? 1 : 0;
  return kSuccess;
}

HONE_DRIVER_API cuThreadExchangeStreamCaptureMode(int *mode) {
  // Each recording has its mode; what a thread prefers beside it is not emulated.
  *mode = 0;
  return kSuccess;
}

HONE_DRIVER_API cuGraphInstantiateWithFlags(ExecutableGraph **executable, Graph *graph, unsigned long long flags) {
  Call call;
  if (!call || find(call.context->graphs, graph) == nullptr)
    return call ? kInvalidValue : call.status;
  auto created = std::make_unique<ExecutableGraph>();
  created->context = call.context;
  created->nodes = handlesOf(*graph);
  created->operations = std::make_shared<std::vector<Operation>>(operationsOf(*graph));
  ++call.driver.counters.graphInstantiations;
  *executable = keep(call.context->executables, std::move(created));
  return kSuccess;
}

HONE_DRIVER_API cuGraphInstantiate_v2(ExecutableGraph **executable, Graph *graph, void **errorNode, char *log,
                                      size_t logBytes) {
  return cuGraphInstantiateWithFlags(executable, graph, 0);
}

HONE_DRIVER_API cuGraphLaunch(void *handle, void *streamHandle) {
  Call call;
  Stream *stream = call ? call.stream(streamHandle) : nullptr;
  if (stream == nullptr)
    return call.status;
  ExecutableGraph *executable = find(call.context->executables, handle);
  if (executable == nullptr)
    return kInvalidValue;
  if (stream->capture) {
    stream->capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  ++call.driver.counters.graphLaunches;
  Context *context = call.context;
  return submit(call, *stream,
                {Operation::Kind::Graph,
                 [context, operations = executable->operations] {
                   for (const Operation &operation : *operations)
                     perform(*context, operation);
                 },
                 {}});
}

HONE_DRIVER_API cuGraphUpload(void *handle, void *stream) {
  Call call;
  return call && find(call.context->executables, handle) == nullptr ? kInvalidValue : call.status;
}

HONE_DRIVER_API cuGraphExecUpdate_v2(void *handle, Graph *graph, GraphUpdateInfo *info) {
  Call call;
  ExecutableGraph *executable = call ? find(call.context->executables, handle) : nullptr;
  if (executable == nullptr || find(call.context->graphs, graph) == nullptr)
    return call ? kInvalidValue : call.status;
  if (info != nullptr)
    *info = {0, nullptr, nullptr};
  std::vector<Operation> operations = operationsOf(*graph);
  bool same = operations.size() == executable->operations->size();
  for (size_t i = 0; same && i < operations.size(); ++i) {
    same = operations[i].kind == (*executable->operations)[i].kind;
    if (!same && info != nullptr)
      *info = {kUpdateError, graph->nodes[i].get(), nullptr};
  }
  if (!same) {
    if (info != nullptr && operations.size() != executable->operations->size())
      info->result = kTopologyChanged;
    return kGraphExecUpdateFailure;
  }
  executable->operations = std::make_shared<std::vector<Operation>>(std::move(operations));
  ++call.driver.counters.graphUpdates;
  return kSuccess;
}

HONE_DRIVER_API cuGraphExecKernelNodeSetParams_v2(void *handle, const void *node, const KernelNodeParams *parameters) {
  Call call;
  ExecutableGraph *executable = call ? find(call.context->executables, handle) : nullptr;
  if (executable == nullptr)
    return call ? kInvalidValue : call.status;
  auto found = std::find(executable->nodes.begin(), executable->nodes.end(), node);
  if (found == executable->nodes.end())
    return kInvalidValue;
  auto index = static_cast<size_t>(found - executable->nodes.begin());
  auto operations = std::make_shared<std::vector<Operation>>(*executable->operations);
  Operation &operation = (*operations)[index];
  if (operation.kind != Operation::Kind::Launch)
    return kInvalidValue;
  LaunchRequest request{parameters->function,
                        {parameters->grid[0], parameters->grid[1], parameters->grid[2]},
                        {parameters->block[0], parameters->block[1], parameters->block[2]},
                        parameters->sharedBytes,
                        operation.launch->cooperative,
                        parameters->arguments,
                        parameters->extra};
  if (Result result = makeLaunch(call, request, operation); result != kSuccess)
    return result;
  executable->operations = std::move(operations);
  ++call.driver.counters.graphUpdates;
  return kSuccess;
}

HONE_DRIVER_API cuGraphGetNodes(Graph *graph, const void **nodes, size_t *count) {
  Call call;
  if (!call || find(call.context->graphs, graph) == nullptr)
    return call ? kInvalidValue : call.status;
  size_t room = nodes != nullptr ? std::min(*count, graph->nodes.size()) : 0;
  for (size_t i = 0; i < room; ++i) // not as they were recorded: nothing says in which order they come
    nodes[i] = graph->nodes[graph->nodes.size() - 1 - i].get();
  *count = nodes != nullptr ? room : graph->nodes.size();
  return kSuccess;
}

HONE_DRIVER_API cuGraphNodeGetType(const Operation *node, int *type) {
  Call call;
  if (!call)
    return call.status;
  switch (node->kind) {
  case Operation::Kind::Launch:
    *type = 0;
    break;
  case Operation::Kind::Copy:
    *type = 1;
    break;
  case Operation::Kind::Set:
    *type = 2;
    break;
  case Operation::Kind::Host:
    *type = 3;
    break;
  default:
    *type = 13; // a batch of operations on memory
  }
  return kSuccess;
}

HONE_DRIVER_API cuGraphDestroy(Graph *graph) {
  Call call;
  if (call.context == nullptr || call.context->graphs.erase(graph) == 0)
    return call ? kInvalidValue : call.status;
  return call.context->error;
}

HONE_DRIVER_API cuGraphExecDestroy(void *executable) {
  Call call;
  if (call.context == nullptr || call.context->executables.erase(executable) == 0)
    return call ? kInvalidValue : call.status;
  return call.context->error;
}
