// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kahn's algorithm, which of the nodes that are ready takes the first.

#include "SortNodes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <queue>

using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace hone {

void addNamesRead(const NodeProto &node, llvm::StringSet<> &names) {
  for (const std::string &input : node.input())
    names.insert(input);
  for (const auto &attribute : node.attribute())
    for (const NodeProto &inner : attribute.g().node())
      addNamesRead(inner, names);
  for (const auto &attribute : node.attribute())
    for (const auto &output : attribute.g().output())
      names.insert(output.name());
}

/// The order of the nodes, by their numbers; shorter than they are where there is a cycle.
static llvm::SmallVector<int> findOrder(const GraphProto &graph) {
  llvm::StringMap<int> producers;
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &output : graph.node(i).output())
      if (!output.empty())
        producers.try_emplace(output, i);
  std::vector<llvm::SmallVector<int>> readers(graph.node_size());
  std::vector<int> missing(graph.node_size(), 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < graph.node_size(); ++i) {
    llvm::StringSet<> names;
    addNamesRead(graph.node(i), names);
    for (const auto &name : names)
      if (auto producer = producers.find(name.getKey()); producer != producers.end() && producer->second != i) {
        readers[producer->second].push_back(i);
        ++missing[i];
      }
    if (missing[i] == 0)
      ready.push(i);
  }
  llvm::SmallVector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (int reader : readers[order.back()])
      if (--missing[reader] == 0)
        ready.push(reader);
  }
  return order;
}

void sortNodes(GraphProto &graph) {
  for (NodeProto &node : *graph.mutable_node())
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        sortNodes(*attribute.mutable_g());
  llvm::SmallVector<int> order = findOrder(graph);
  if (static_cast<int>(order.size()) != graph.node_size() || llvm::is_sorted(order))
    return;
  auto nodes = std::move(*graph.mutable_node());
  graph.clear_node();
  for (int node : order)
    *graph.add_node() = std::move(nodes[node]);
}

} // namespace hone
