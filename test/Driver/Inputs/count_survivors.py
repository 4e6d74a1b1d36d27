# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""count_survivors.py BEFORE.onnx AFTER.onnx: which weights of products [K, N] were pruned to 2 of 4 inputs, and that nothing else
of the graph has changed but what nodes say of them.
"""

import sys

import numpy as np
import onnx
from onnx import numpy_helper


def main():
    before, after = (onnx.load(path) for path in sys.argv[1:])
    old, new = ({tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
                for model in (before, after))
    products = {node.input[1] for node in before.graph.node if node.op_type == "MatMul" and node.input[1] in old}
    pruned = kept = others = 0
    for name, weight in new.items():
        if np.array_equal(weight, old[name]):
            kept, others = kept + (name in products), others + (name not in products)
            continue
        columns, rows = weight.shape
        survivors = (weight.reshape(columns // 4, 4, rows) != 0).sum(axis=1)
        assert name in products and (survivors == 2).all() and np.isin(weight, np.append(old[name], 0)).all(), name
        pruned += 1
    for model in (before, after):
        model.graph.ClearField("initializer")
        for node in model.graph.node:
            node.ClearField("metadata_props")
    assert before.graph == after.graph
    print(f"pruned: {pruned} weights, each with 2 of 4; as they were: {kept} product, {others} others")


main()
