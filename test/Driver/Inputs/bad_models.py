# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes models with one fault each, and a good one, into a folder: bad_models.py FOLDER."""

import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
node = helper.make_node


def info(name, shape=(2, 4), element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def save(name, nodes, inputs=None, outputs=None, initializers=(), opsets=(("", 21),)):
    graph = helper.make_graph(nodes, "graph", inputs or [info("x")], outputs or [info("y")], list(initializers))
    imports = [helper.make_opsetid(*opset) for opset in opsets]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), f"{name}.onnx")


def save_external(name, location, dims=(4,), **places):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **places}.items():
        tensor.external_data.add(key=key, value=str(value))
    save(name, [node("Add", ["x", "w"], ["y"])], initializers=[tensor])


def operators():
    save("good", [node("Relu", ["x"], ["y"], name="relu")])
    save("unknown-operator", [node("Relux", ["x"], ["a"], name="n1"), node("Relux", ["a"], ["y"], name="n2")])
    save("unknown-domain", [node("Relu", ["x"], ["y"], name="n1", domain="org.mine")])
    save("unknown-opset", [node("Relu", ["x"], ["y"])], opsets=[("", 99)])
    save("old-opset", [node("Scan", ["", "x"], ["y"], name="n1", num_scan_inputs=1, body=helper.make_graph(
        [node("Relu", ["a"], ["b"])], "body", [info("a", ())], [info("b", ())]))], [info("x", (1, 4))], [info("y", (1, 4))], opsets=[("", 8)])
    save("no-opset", [node("Relu", ["x"], ["y"])], opsets=[("ai.onnx.ml", 3)])
    save("no-lowering", [node("RandomUniformLike", ["x"], ["y"], name="n1")])
    save("strings", [node("Identity", ["x"], ["y"])], [info("x", (2,), TensorProto.STRING)],
         [info("y", (2,), TensorProto.STRING)])


def graphs():
    save("cycle", [node("Add", ["x", "b"], ["a"], name="n1"), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])])
    save("unsorted", [node("Relu", ["a"], ["y"], name="n2"), node("Relu", ["x"], ["a"], name="n1")])
    save("twice", [node("Relu", ["x"], ["a"], name="n1"), node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["y"])])
    save("twice-output", [node("Relu", ["x"], ["y"])], outputs=[info("y"), info("y")])
    save("dangling", [node("Add", ["x", "nowhere"], ["y"], name="n1")])
    save("dangling-output", [node("Relu", ["x"], ["z"])])
    save("no-attribute", [node("Cast", ["x"], ["y"], name="n1")])
    save("wrong-attribute", [node("Cast", ["x"], ["y"], name="n1", to="float")])
    save("types", [node("Add", ["x", "i"], ["y"], name="n1")], [info("x"), info("i", (4,), TensorProto.INT64)])
    save("shapes", [node("MatMul", ["x", "w"], ["y"], name="n1")], [info("x"), info("w", (3, 5))])
    shape = numpy_helper.from_array(np.array([3, 3]), "shape")
    save("reshape", [node("Reshape", ["x", "shape"], ["y"], name="n1")], outputs=[info("y", ("a", "b"))],
         initializers=[shape])
    short = TensorProto(name="w", data_type=FLOAT, dims=(4,), raw_data=b"abc")
    save("short", [node("Add", ["x", "w"], ["y"])], initializers=[short])


def external_data():
    pathlib.Path("weights.bin").write_bytes(bytes(16))
    save_external("external-missing", "nothing.bin")
    save_external("external-short", "weights.bin", offset=8)
    save_external("external-far", "weights.bin", offset=10**18)
    save_external("external-negative", "weights.bin", offset=-4)
    save_external("external-length", "weights.bin", length=12)
    save_external("external-escape", "../weights.bin")
    save_external("external-absolute", "/weights.bin")


def files():
    pathlib.Path("empty.onnx").write_bytes(b"")
    pathlib.Path("text.onnx").write_text("this is not ONNX\n")
    pathlib.Path("folder.onnx").mkdir()
    with open("large.onnx", "wb") as file:
        file.truncate(3 << 30)


os.chdir(sys.argv[1])
operators()
graphs()
external_data()
files()
