# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""list_integers.py MODEL.onnx: the nodes that read integers as weights, with what they say of them, and how many of each."""

import collections
import sys

import onnx


def describe(node, types):
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    attributes = {name: value for name, value in attributes.items() if name not in ("K", "N")}
    weights = [types[name] for name in node.input if name in types]
    return f"{node.op_type} {attributes} of {' '.join(weights)}"


def main():
    model = onnx.load(sys.argv[1])
    onnx.checker.check_model(model)
    types = {tensor.name: f"{onnx.TensorProto.DataType.Name(tensor.data_type)}[{len(tensor.dims)}]"
             for tensor in model.graph.initializer}
    kinds = ("DequantizeLinear", "MatMulNBits", "GatherBlockQuantized")
    counts = collections.Counter(describe(node, types) for node in model.graph.node if node.op_type in kinds)
    for text, count in sorted(counts.items()):
        print(count, "x", text)


main()
