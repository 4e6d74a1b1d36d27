# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that an artefact computes against central differences of the ONNX model in f64, as onnx's reference evaluates small cases
and onnxruntime whole models.

A small case is checked for every element of every input and weight: in f64, where it runs as generated code, and where its f32 form is
raised, in f32 on kernels. Whole models are checked in f32, for the loss of a few tokens, along a direction for each parameter.
"""

import functools
import math
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import gradient_cases
import gradient_models
import suite

EXACT = 1e-6  # f64; differences of fourth order with the steps below err by less than 1e-9
F32 = 1e-6  # of the largest element, as EXACT: sums of at most 64 products of f32, each rounded by 2^-24
# Along a direction: sums of the products of many rounded elements that cancel. Of a whole model, after some layers.
WHOLE = 2e-4
STEP, SHORT_STEP = 1e-3, 1e-5  # in whole models a step of the second seldom meets a kink
TOKENS = 12


erf = np.vectorize(math.erf, otypes=[np.float64])  # that of onnx's reference is an approximation, which errs by 3e-8


class Erf(OpRun):
    def _run(self, x):
        return (erf(x),)


class Gelu(OpRun):
    def _run(self, x, approximate="none"):
        inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)) if approximate == "tanh" else erf(x / np.sqrt(2))
        return (x / 2 * (1 + inner),)


class LRN(OpRun):
    """That of onnx's reference takes other windows."""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        padded = np.pad(x ** 2, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        sums = np.lib.stride_tricks.sliding_window_view(padded, size, 1).sum(-1)
        return (x / (bias + alpha / size * sums) ** beta,)


class LinearAttention(OpRun):
    """In f64; that of onnx's reference computes in f32."""
    op_domain = ""

    def _run(self, query, key, value, past_state=None, decay=None, beta=None, chunk_size=None, kv_num_heads=None, q_num_heads=None,
             scale=None, update_rule=None):
        rows = query.shape[:2]
        q, k, v = (array.reshape(*rows, heads, -1) for array, heads in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads)))
        state, outputs = past_state, []
        factors = np.ones((*rows, kv_num_heads, 1)) if decay is None else np.exp(decay.reshape(*rows, kv_num_heads, -1))
        for token in range(rows[1]):
            state = state * factors[:, token, :, :, None]
            update = v[:, token]
            if beta is not None:
                known = np.einsum("bhkv,bhk->bhv", state, k[:, token])
                update = beta[:, token, :, None] * (update - known)
            state = state + np.einsum("bhk,bhv->bhkv", k[:, token], update)
            read = np.repeat(state, q_num_heads // kv_num_heads, 1)
            outputs.append(scale * np.einsum("bhkv,bhk->bhv", read, q[:, token]))
        return np.stack(outputs, 1).reshape(*rows, -1), state


class CausalConvWithState(OpRun):
    op_domain = ""

    def _run(self, x, weight, bias=None, past_state=None, activation=None):
        width = weight.shape[2]
        whole = np.concatenate([past_state, x], -1)
        windows = np.lib.stride_tricks.sliding_window_view(whole, width, -1)
        sums = (windows * weight[None, :, 0, None]).sum(-1) + bias[:, None]
        return sums / (1 + np.exp(-sums)), whole[..., x.shape[2]:]


REFERENCES = [Erf, Gelu, LRN, LinearAttention, CausalConvWithState]


def difference(evaluate, at, direction, step):
    """The derivative of evaluate() along `direction` of `at`, which is changed in place. Of fourth order in the step."""
    original = at.copy()
    values = []
    for count in (-2, -1, 1, 2):
        at[...] = original + count * step * direction
        values.append(evaluate())
    at[...] = original
    return (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * step)  # 0 where all are the same


def differences(evaluate, at):
    """That by each element of `at`."""
    result = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        unit = np.zeros(at.shape)
        unit[place] = 1
        result[place] = difference(evaluate, at, unit, STEP)
    return result


def compile_gradients(tools, folder, model, of, flags=()):
    onnx.save(model, folder / "model.onnx")
    suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "gradients.hone", f"--gradients={of}", *flags])


def compare(name, actual, expected, tolerance):
    if actual.shape != expected.shape:
        raise suite.Failure(f"the gradient of {name} has shape {actual.shape}, not {expected.shape}")
    error = np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-30)  # 0 where there is no slope
    if not error <= tolerance:
        raise suite.Failure(f"the gradient of {name} is off by {error:.1e} of its largest element")


def check_case(case, element, tools):
    tolerance, raised = (EXACT, False) if element == np.float64 else (F32, True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # What f32 rounds is rounded before differences are taken.
        values = {name: np.asarray(array, element).astype(np.float64) for name, array in {**case.inputs, **case.weights()}.items()}
        others = {name: array for name, array in case.constants.items() if name not in values}
        evaluator = ReferenceEvaluator(gradient_cases.Case(case.nodes, values, others, opset=case.opset).proto(np.float64), new_ops=REFERENCES)
        shape = evaluator.run(None, values)[0].shape
        factors = np.random.default_rng(5).standard_normal(shape).astype(element).astype(np.float64)

        def evaluate():
            return float((evaluator.run(None, values)[0] * factors).sum())

        compile_gradients(tools, folder, case.proto(element, shape), ",".join(values), [f"--save-ir={folder}"])
        if raised and " = hone." not in (folder / "3-lower.mlir").read_text().replace(" = hone.get_param", ""):
            raise suite.Failure("it is not raised")
        inputs = {name: values[name].astype(element) for name in case.inputs}
        outputs = gradient_models.run_gradients(tools, folder, {**inputs, "y.gradient": factors.astype(element)})
        for name, value in values.items():
            gradient = outputs[f"{name}.gradient"]
            if value.ndim == 3 and gradient.ndim == 2:  # matrices of experts, which are below each other, a row an output
                gradient = gradient.reshape(value.shape[0], value.shape[2], value.shape[1]).transpose(0, 2, 1)
            compare(name, gradient, differences(evaluate, value), tolerance)


WIDER = {TensorProto.FLOAT: TensorProto.DOUBLE}


def widen(graph):
    """The graph with f64 in place of f32."""
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        kind.elem_type = WIDER.get(kind.elem_type, kind.elem_type)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to":
                attribute.i = WIDER.get(attribute.i, attribute.i)
            elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))
            elif attribute.HasField("g"):
                widen(attribute.g)


class Decoder:
    """A language model in f64, whose parameters can be changed."""

    def __init__(self, path):
        self.proto = onnx.load(path)
        self.values = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in self.proto.graph.initializer
                       if tensor.data_type == TensorProto.FLOAT}
        wide = onnx.ModelProto()
        wide.CopyFrom(self.proto)
        widen(wide.graph)
        wide.graph.input.extend(helper.make_tensor_value_info(name, TensorProto.DOUBLE, array.shape)
                                for name, array in self.values.items())
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # that parameters can be fed is meant
        self.session = onnxruntime.InferenceSession(wide.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def inputs(self, ids):
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids),
                 "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape).copy()}
        for value in self.proto.graph.input:
            if "past" in value.name:
                sizes = [int(dim.dim_param) if dim.dim_param.isdigit() else dim.dim_value or (ids.shape[0] if axis == 0 else 0)
                         for axis, dim in enumerate(value.type.tensor_type.shape.dim)]
                known[value.name] = np.zeros(sizes, np.float64)
        return {value.name: known[value.name] for value in self.proto.graph.input}

    def loss(self, ids, targets):
        logits = self.session.run(["logits"], {**self.inputs(ids), **self.values})[0]
        most = logits.max(-1, keepdims=True)
        lse = np.log(np.exp(logits - most).sum(-1)) + most[..., 0]
        return float((lse - np.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean())


def check_decoder(path, tools):
    decoder = Decoder(path)
    vocabulary = decoder.proto.graph.output[0].type.tensor_type.shape.dim[2].dim_value
    random = np.random.default_rng(3)
    tokens = random.integers(0, vocabulary, (2, TOKENS + 1))
    ids, targets = tokens[:, :-1], tokens[:, 1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        loss = decoder.loss(ids, targets)
        actual_loss, gradients = gradient_models.initializer_gradients(tools, folder, path, {"input_ids": ids, "targets": targets}, decoder.values)
        if not abs(actual_loss - loss) <= 1e-5 * loss:
            raise suite.Failure(f"the loss is {actual_loss}, not {loss}")
        for parameter in sorted(gradients):
            value = decoder.values[parameter]
            gradient = gradients[parameter].astype(np.float64)
            # Half along the gradient, where the derivative is large, and half at random.
            direction = random.standard_normal(value.shape)
            direction = direction / np.linalg.norm(direction) + gradient / max(np.linalg.norm(gradient), 1e-30)
            expected = difference(lambda: decoder.loss(ids, targets), value, direction, SHORT_STEP)
            actual = float((gradient * direction).sum())
            if not abs(actual - expected) <= WHOLE * max(abs(expected), 1e-3 * loss):
                raise suite.Failure(f"along a direction of {parameter} the derivative is {actual}, not {expected}")


# Those whose operators onnxruntime has in f64.
DECODERS = ["opt.dynamo18", "gpt2.optimum", "phi3.optimum", "qwen3_moe.optimum"]
ZOO = ["llama.optimum", "gemma2.optimum", "qwen3.optimum", "deepseek_v3.optimum", "mixtral.dynamo18"]


def all_cases():
    for name, case, elements in gradient_cases.cases():
        for element in elements:
            yield f"f{8 * np.dtype(element).itemsize}/{name}", functools.partial(check_case, case, element)
    for name in DECODERS:
        yield f"model/{name}", functools.partial(check_decoder, suite.ROOT / "test" / "models" / name / "model.onnx")
    if shared := suite.shared_models():
        for name in ZOO:
            yield f"model/{name}", functools.partial(check_decoder, shared / "zoo" / name / "model.onnx")
        yield "model/trained", functools.partial(check_decoder, shared / "lm" / "target" / "optimum" / "model.onnx")


if __name__ == "__main__":
    sys.exit(suite.run_main(__doc__, list(all_cases())))
