# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ONNX's own node tests as the project counts them, and their tensors in the form that .npz files have them.

"""The rule by which cases are selected. A case of `onnx.backend.test.case.node`, or one of `onnx.backend.test.case.model` with a node
Gradient, which has no other, counts if

1. its model imports the default domain, and none beside it but the preview domains;
2. all inputs and outputs of its graph are tensors, none of them of strings;
3. none of its nodes is an operator on sequences, optionals, strings or images, or a random one;
4. none of its nodes is an operator that has a training mode (BatchNormalization, Dropout).

Of the 1,886 cases of onnx 1.23.2 these are 1,791.
"""

import warnings
from dataclasses import dataclass

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, numpy_helper

CONTAINERS = {"ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
              "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
              "SplitToSequence"}
STRINGS = {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
IMAGES = {"ImageDecoder"}
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
TRAINED = {"BatchNormalization", "Dropout"}
LEFT_OUT = CONTAINERS | STRINGS | IMAGES | RANDOM | TRAINED

# Words of manifests for element types, and the numpy type that carries them where numpy has none of its own.
WORDS = {TensorProto.FLOAT: "f32", TensorProto.FLOAT16: "f16", TensorProto.BFLOAT16: "bf16", TensorProto.DOUBLE: "f64",
         TensorProto.INT8: "i8", TensorProto.INT16: "i16", TensorProto.INT32: "i32", TensorProto.INT64: "i64",
         TensorProto.UINT8: "u8", TensorProto.UINT16: "u16", TensorProto.UINT32: "u32", TensorProto.UINT64: "u64",
         TensorProto.BOOL: "bool", TensorProto.FLOAT8E4M3FN: "f8e4m3fn", TensorProto.FLOAT8E4M3FNUZ: "f8e4m3fnuz",
         TensorProto.FLOAT8E5M2: "f8e5m2", TensorProto.FLOAT8E5M2FNUZ: "f8e5m2fnuz", TensorProto.FLOAT8E8M0: "f8e8m0",
         TensorProto.INT4: "i4", TensorProto.UINT4: "u4", TensorProto.COMPLEX64: "c64", TensorProto.COMPLEX128: "c128",
         TensorProto.FLOAT4E2M1: "f4e2m1", TensorProto.INT2: "i2", TensorProto.UINT2: "u2"}
CARRIERS = {TensorProto.BFLOAT16: numpy.uint16, TensorProto.FLOAT8E4M3FN: numpy.uint8,
            TensorProto.FLOAT8E4M3FNUZ: numpy.uint8, TensorProto.FLOAT8E5M2: numpy.uint8,
            TensorProto.FLOAT8E5M2FNUZ: numpy.uint8, TensorProto.FLOAT8E8M0: numpy.uint8,
            TensorProto.FLOAT4E2M1: numpy.uint8}
NARROW_INTEGERS = {TensorProto.INT4: numpy.int8, TensorProto.UINT4: numpy.uint8, TensorProto.INT2: numpy.int8,
                   TensorProto.UINT2: numpy.uint8}


@dataclass
class Tensor:
    """One input or output: its name, its ONNX element type and its values in numpy's terms (ml_dtypes included)."""

    name: str
    element: int
    values: numpy.ndarray


@dataclass
class Case:
    name: str
    operator: str
    opset: int
    model: onnx.ModelProto
    inputs: list
    outputs: list
    rtol: float
    atol: float


def walk_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk_nodes(attribute.g)


def counts(model):
    """Whether a case with this model is one of those that count, by the rule above."""
    graph = model.graph
    values = list(graph.input) + list(graph.output)
    return (
        all(opset.domain in ("", "ai.onnx", "ai.onnx.preview", "ai.onnx.preview.training") for opset in model.opset_import)
        and all(value.type.WhichOneof("value") == "tensor_type" for value in values)
        and all(value.type.tensor_type.elem_type != TensorProto.STRING for value in values)
        and not any(node.op_type in LEFT_OUT for node in walk_nodes(graph))
    )


def to_carrier(values, element):
    """The array that a .npz file holds for values of an element type."""
    if element in CARRIERS:
        return numpy.ascontiguousarray(values).view(CARRIERS[element]).reshape(values.shape)
    if element in NARROW_INTEGERS:
        return values.astype(NARROW_INTEGERS[element])
    return numpy.asarray(values, order="C")


def from_carrier(values, element):
    """The inverse of to_carrier."""
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(element)
    if element in CARRIERS:
        return values.view(numpy_type)
    if element in NARROW_INTEGERS:
        return values.astype(numpy_type)
    return values


def to_array(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else numpy.asarray(value)


def make_tensors(infos, values):
    return [Tensor(info.name, info.type.tensor_type.elem_type, to_array(value)) for info, value in zip(infos, values)]


def collect():
    """All cases that count, in ONNX's order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import model, node

        everything = node.collect_testcases(None)
        everything += [test for test in model.collect_testcases() if test.model and test.model.graph.node[-1].op_type == "Gradient"]
    operators = {test.name: test.model.graph.node[-1].op_type for test in everything if "_expanded" not in test.name}
    cases = []
    for test in everything:
        if not counts(test.model):
            continue
        (inputs, outputs), = test.data_sets
        graph = test.model.graph
        operator = operators.get(test.name.split("_expanded")[0], graph.node[-1].op_type)
        opset = max(entry.version for entry in test.model.opset_import)
        cases.append(Case(test.name, operator, opset, test.model, make_tensors(graph.input, inputs),
                          make_tensors(graph.output, outputs), test.rtol, test.atol))
    return cases, len(everything)


def differ(expected, actual, case):
    """Why `actual` (as a .npz file holds it) is not the expected tensor, or None."""
    carrier = to_carrier(expected.values, expected.element)
    if actual.dtype != carrier.dtype:
        return f"output '{expected.name}': expected {carrier.dtype} elements, got {actual.dtype}"
    if actual.shape != carrier.shape:
        return f"output '{expected.name}': expected shape {list(carrier.shape)}, got {list(actual.shape)}"
    got = from_carrier(actual, expected.element)
    wide = numpy.float64 if carrier.dtype.kind == "f" or expected.element in CARRIERS else None
    want, got = (expected.values.astype(wide), got.astype(wide)) if wide else (carrier, actual)
    try:
        numpy.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line.startswith(("Mismatched", "Max absolute", "x and y"))]
        return f"output '{expected.name}': " + "; ".join(lines or ["values differ"])
    return None
