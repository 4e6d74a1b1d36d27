# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of opsets 7 to 10, whose operators changed since, and of dimensions that only seem to have a name, against onnxruntime."""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_reference
import suite

TOLERANCE = 1e-6
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def real(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def make(opset, nodes, inputs, outputs, constants=None):
    """A model and its inputs: `inputs` has arrays by name, `outputs` (element type, dimensions) by name."""
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info(name, *info) for name, info in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()])
    return helper.make_model(graph, ir_version=4, opset_imports=[helper.make_opsetid("", opset)]), inputs


def choose():
    """An operator that changed inside the branches of an If."""
    branches = [helper.make_graph([helper.make_node("Slice", ["x"], [f"y{i}"], axes=[0], starts=[i], ends=[i + 2])], f"b{i}", [],
                                  [helper.make_tensor_value_info(f"y{i}", FLOAT, [2, 3])]) for i in range(2)]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    return make(9, [node], {"c": np.array(False), "x": real(4, 3)}, {"y": (FLOAT, [2, 3])})


def name_dimensions(word):
    """Two inputs whose first dimensions have one name, as exporters write it that know nothing of them, and differ."""
    model, inputs = make(13, [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": real(2, 3), "b": real(3, 4)}, {"y": (FLOAT, [None, None])})
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = word
    return model, inputs


def node(*words, **attributes):
    return [helper.make_node(*words, **attributes)]


def image(*shape):
    return {"x": real(1, 2, *shape)}


CASES = {
    "slice-9": make(9, node("Slice", ["x"], ["y"], axes=[1], starts=[-2], ends=[9]), {"x": real(2, 5)}, {"y": (FLOAT, [2, 2])}),
    "slice-7": make(7, node("Slice", ["x"], ["y"], starts=[1], ends=[3]), {"x": real(4, 5)}, {"y": (FLOAT, [2, 5])}),
    "clip-10": make(10, node("Clip", ["x"], ["y"], min=-0.5, max=0.5), {"x": real(2, 5)}, {"y": (FLOAT, [2, 5])}),
    "pad-10": make(10, node("Pad", ["x"], ["y"], pads=[0, 1, 2, 0], value=3.0), {"x": real(2, 5)}, {"y": (FLOAT, [4, 6])}),
    "topk-9": make(9, node("TopK", ["x"], ["y", "i"], k=2), {"x": real(3, 5)}, {"y": (FLOAT, [3, 2]), "i": (INT64, [3, 2])}),
    "topk-10": make(10, node("TopK", ["x", "k"], ["y", "i"]), {"x": real(3, 5)}, {"y": (FLOAT, [3, 2]), "i": (INT64, [3, 2])},
                    {"k": np.array([2], np.int64)}),
    "upsample-7": make(7, node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 3.0]), image(2, 2), {"y": (FLOAT, [1, 2, 4, 6])}),
    "upsample-9": make(9, node("Upsample", ["x", "s"], ["y"], mode="linear"), image(3, 3), {"y": (FLOAT, [1, 2, 6, 6])},
                       {"s": np.array([1, 1, 2, 2], np.float32)}),
    "resize-10": make(10, node("Resize", ["x", "s"], ["y"]), image(3, 3), {"y": (FLOAT, [1, 2, 6, 6])},
                      {"s": np.array([1, 1, 2, 2], np.float32)}),
    "scatter-9": make(9, node("Scatter", ["x", "i", "u"], ["y"], axis=1), {"x": real(2, 4), "i": np.array([[1, 0], [2, 3]]), "u": real(2, 2)},
                      {"y": (FLOAT, [2, 4])}),
    "onehot-9": make(9, node("OneHot", ["i", "d", "v"], ["y"]), {"i": np.array([1, 0])}, {"y": (FLOAT, [2, 3])},
                     {"d": np.array([3], np.int64), "v": np.array([0, 1], np.float32)}),
    "branches-9": choose(),
    "name-?": name_dimensions("?"),
    "name-none": name_dimensions("None"),
}


def check(case, tools):
    model, inputs = case
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(model, folder / "model.onnx")
        session = onnx_reference.open_session(folder / "model.onnx")
        expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
        np.savez(folder / "in.npz", **inputs)
        suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone"])
        suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"])
        got = dict(np.load(folder / "out.npz"))
    for output, array in expected.items():
        if got[output].shape != array.shape or not np.allclose(got[output], array, rtol=TOLERANCE, atol=TOLERANCE):
            raise suite.Failure(f"expected {output} to be {array.tolist()}, but got {got[output].tolist()}")


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, case) for name, case in CASES.items() if options.only in name]
    return suite.run_all(cases, lambda case: check(case, options.build / "bin"), options.jobs)


sys.exit(main())
