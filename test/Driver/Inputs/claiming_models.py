# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes models and IR that claim more than they are: claiming_models.py FOLDER."""

import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
os.chdir(sys.argv[1])


def value(name, shape=("n",)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def tensor(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def save(name, nodes, inputs=None, outputs=None, initializers=(), functions=(), sparse=()):
    graph = helper.make_graph(nodes, "g", inputs or [value("x")], outputs or [value("y")], list(initializers),
                              sparse_initializer=list(sparse))
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9), f"{name}.onnx")


def chain(name, count):
    nodes = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    save(name, nodes, [value("v0")], [value(f"v{count}")])


def calling(name, depth):
    """Functions of which each calls the one before twice."""
    functions = [helper.make_function("f", "F0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 18)])]
    for i in range(1, depth):
        calls = [node(f"F{i - 1}", ["a"], ["m"], domain="f"), node(f"F{i - 1}", ["m"], ["b"], domain="f")]
        functions.append(helper.make_function("f", f"F{i}", ["a"], ["b"], calls, [helper.make_opsetid("f", 1)]))
    save(name, [node(f"F{depth - 1}", ["x"], ["y"], domain="f")], functions=functions)


def module(name, attribute, before=""):
    pathlib.Path(f"{name}.mlir").write_text(f"{before}module attributes {{tensor.t = {attribute}}} {{}}\n")


chain("nodes", 5)
chain("slow", 20000)
calling("functions", 22)
calling("endless", 100)
save("sparse", [node("Add", ["w0", "w1"], ["y"])], sparse=[
    helper.make_sparse_tensor(tensor(f"w{i}", [1], np.float32), tensor("", [0]), [50331648]) for i in range(2)])
save("rank", [node("Relu", ["x"], ["y"])], [value("x", [1] * 65)], [value("y", [1] * 65)])
pathlib.Path("messages.onnx").write_bytes(b"\x08\x09\x3a\x54" + b"\x5a\x00" * 42)
one = numpy_helper.from_array(np.array([1], np.float32))
save("propagated", [node("ConstantOfShape", ["s"], ["c"], value=one), node("Add", ["c", "c"], ["y"])],
     initializers=[tensor("s", [10**12])])

module("deep", "[" * 300 + "]" * 300)
module("flat", "[" * 250 + "]" * 250 + ", tensor.u = [" + "[], " * 1000 + "[]], tensor.v = \"" + "[" * 1000 + "\"")
module("sum", "affine_map<(d0) -> (d0" + " + d0" * 300 + ")>")
module("dimensions", "tensor<" + "1x" * 65 + "f32>")
module("aliases", "!a40", "!a0 = i1\n" + "".join(f"!a{i + 1} = tuple<!a{i}, !a{i}>\n" for i in range(40)))
module("chain", "#a300", "#a0 = 1 : i32\n" + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(300)))
pathlib.Path("splat.mlir").write_text("func.func @main() -> tensor<100000000000xf32> {\n"
                                      "  %c = arith.constant dense<1.0> : tensor<100000000000xf32>\n"
                                      "  return %c : tensor<100000000000xf32>\n}\n")
