# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that round activations to integers of 8 bits as they would be without.

What a rounding of activations costs is a matter of its scale, and Hone gives each row one of its own, or none, and leaves those out that are
inside of what it computes as one operation; so both are measured from the same file with the same integer weights and activations as they are. Weights have to be initializers, as onnxruntime's quantizer makes them.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROUNDING = {"DynamicQuantizeLinear", "DynamicQuantizeLSTM", "QuantizeLinear"}
PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}


def make(model):
    """A copy of a model without rounding, or None where it has none."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    if not any(node.op_type in ROUNDING for node in graph.node):
        return None
    weights = {tensor.name: tensor for tensor in graph.initializer}
    biases = find_biases(graph.node)
    nodes = [replaced for node in graph.node
             for replaced in (keep_bias(node) if biases & set(node.output) else REPLACE.get(node.op_type, keep)(node, weights, graph))]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    return copy


def keep(node, weights, graph):
    return [node]


def add_floats(graph, node, name, values):
    """A new initializer of the node, and its name."""
    name = f"{node.name or node.output[0]}/{name}"
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
    return name


def keep_floats(node, weights, graph):
    """DynamicQuantizeLinear: the floats themselves, as integers of scale 1 and zero point 0 would be."""
    codes, scale, zero = node.output
    return [helper.make_node("Identity", [node.input[0]], [codes]),
            helper.make_node("Identity", [add_floats(graph, node, "scale", 1)], [scale]),
            helper.make_node("Identity", [add_floats(graph, node, "zero", 0)], [zero])]


def skip_codes(node, weights, graph):
    """DequantizeLinear of what QuantizeLinear makes: what that was given."""
    for other in graph.node:
        if other.op_type == "QuantizeLinear" and other.output[0] == node.input[0]:
            return [helper.make_node("Identity", [other.input[0]], list(node.output))]
    return [node]


def multiply_floats(node, weights, graph):
    """MatMulInteger and ConvInteger of these, whose zero point is not read."""
    values = numpy_helper.to_array(weights[node.input[1]]).astype(np.float32)
    if len(node.input) > 3 and node.input[3]:
        zero = numpy_helper.to_array(weights[node.input[3]]).astype(np.float32)
        values = values - (zero if node.op_type == "MatMulInteger" or not zero.ndim else zero.reshape(-1, *[1] * (values.ndim - 1)))
    product = helper.make_node(PRODUCTS[node.op_type], [node.input[0], add_floats(graph, node, "weight", values)], list(node.output))
    product.attribute.extend(node.attribute)
    return [product]


def find_biases(nodes):
    """Names of what is added to sums of integers, and of what that is made of: integers of the scale of the sums."""
    sums = {name for node in nodes if node.op_type in PRODUCTS for name in node.output}
    biases = {name for node in nodes if node.op_type == "Add" and sums & set(node.input) for name in node.input} - sums
    for node in reversed(nodes):
        if node.op_type in ("Reshape", "Cast", "Floor") and biases & set(node.output):
            biases.add(node.input[0])
    return biases


def keep_bias(node):
    """A bias that is not rounded to integers."""
    if node.op_type == "Floor":
        return [helper.make_node("Identity", list(node.input), list(node.output))]
    if node.op_type == "Cast":
        return [helper.make_node("Cast", list(node.input), list(node.output), to=TensorProto.FLOAT)]
    return [node]


def recur_in_floats(node, weights, graph):
    """DynamicQuantizeLSTM: LSTM with what its integers stand for."""
    def read(index):
        return numpy_helper.to_array(weights[node.input[index]]).astype(np.float32)

    def stand_for(index, scale):
        codes, (factors, zeros) = read(index), (read(at).reshape(read(at).shape[0], 1, -1) for at in (scale, scale + 1))
        return add_floats(graph, node, f"input {index}", ((codes - zeros) * factors).transpose(0, 2, 1))

    lstm = helper.make_node("LSTM", [node.input[0], stand_for(1, 8), stand_for(2, 10), *node.input[3:8]], list(node.output), name=node.name)
    lstm.attribute.extend(node.attribute)
    return [lstm]


REPLACE = {"DynamicQuantizeLinear": keep_floats, "DequantizeLinear": skip_codes, "DynamicQuantizeLSTM": recur_in_floats,
           "MatMulInteger": multiply_floats, "ConvInteger": multiply_floats}
