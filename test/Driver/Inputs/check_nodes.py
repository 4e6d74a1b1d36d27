# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_nodes.py MODEL.onnx REPORT.json: nodes say of every weight that was changed what the report says, once."""

import json
import sys

import onnx


def main():
    model = onnx.load(sys.argv[1])
    onnx.checker.check_model(model)
    with open(sys.argv[2], encoding="utf-8") as file:
        weights = {weight["name"]: weight for weight in json.load(file)["weights"] if weight["changed"]}
    said = {}
    for node in model.graph.node:
        keys = [entry.key for entry in node.metadata_props]
        assert len(keys) == len(set(keys)), keys
        said |= {entry.key: json.loads(entry.value) for entry in node.metadata_props}
    assert weights and said == {f"hone.weight/{name}": weight for name, weight in weights.items()}, set(said)


main()
