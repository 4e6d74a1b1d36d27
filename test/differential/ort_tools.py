# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""onnxruntime's tools, each as a function that writes what it makes of a model: quantizers, optimizers and the conversion to float16."""

import logging
import shutil
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization import matmul_nbits_quantizer
from onnxruntime.transformers import float16, optimizer

import suite

warnings.filterwarnings("ignore", module="onnxruntime")  # of scales that are infinite
INT8, UINT8, INT16, UINT16 = (getattr(quantization.QuantType, name) for name in ("QInt8", "QUInt8", "QInt16", "QUInt16"))
PRODUCTS = ["Conv", "Gemm", "MatMul"]
# The type that onnxruntime.transformers.optimizer knows an architecture by; others are optimized as bert is, its default.
MODEL_TYPES = {"gpt2": "gpt2", "vit": "vit", "t5": "t5", "whisper": "bart", "qwen3": "qwen3"}


class StoredInputs(quantization.CalibrationDataReader):
    """The inputs of a model's stored cases."""

    def __init__(self, path):
        self.cases = iter([case["in"] for case in suite.stored_cases(path).values()])

    def get_next(self):
        return next(self.cases, None)


def quantize_dynamic(path, to, **options):
    quantization.quantize_dynamic(path, to, **options)


def quantize_static(path, to, **options):
    """All operators that the tool knows; where it makes infinite scales, which it does of masks of minus infinity, the products alone."""
    quantization.quantize_static(path, to, StoredInputs(path), **options)
    if not is_finite(onnx.load(to)):
        quantization.quantize_static(path, to, StoredInputs(path), op_types_to_quantize=PRODUCTS, **options)


def quantize_to_bits(path, to, bits, symmetric):
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(path), bits=bits, block_size=32, is_symmetric=symmetric)
    quantizer.process()
    quantizer.model.save_model_to_file(str(to))


def fuse(path, to, half=False):
    kind = MODEL_TYPES.get(path.parent.name.split(".")[0], "bert")
    model = optimizer.optimize_model(str(path), kind, num_heads=0, hidden_size=0, opt_level=0)  # heads are found in the graph
    if half:
        model.convert_float_to_float16()
    model.save_model_to_file(str(to))


def optimize(path, to, level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(to)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def convert_to_half(path, to):
    onnx.save(float16.convert_float_to_float16(onnx.load(path)), to)


def quantize_optimized(path, to):
    """What guides recommend for encoders: fused by the optimizer, then quantized."""
    fuse(path, to.with_name("fused.onnx"))
    quantize_dynamic(to.with_name("fused.onnx"), to, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def optimize_quantized(path, to, quantize):
    """What a session makes of a quantized file, and writes as its optimized model."""
    quantize(path, to.with_name("quantized.onnx"))
    optimize(to.with_name("quantized.onnx"), to, "ALL")


def static(form, **options):
    return lambda path, to: quantize_static(path, to, quant_format=getattr(quantization.QuantFormat, form), **options)


TOOLS = {
    "basic": lambda path, to: optimize(path, to, "BASIC"),
    "extended": lambda path, to: optimize(path, to, "EXTENDED"),
    "all": lambda path, to: optimize(path, to, "ALL"),
    "fused": fuse,
    "fused-half": lambda path, to: fuse(path, to, half=True),
    "half": convert_to_half,
    "dynamic": quantize_dynamic,
    "dynamic-uint8": lambda path, to: quantize_dynamic(path, to, weight_type=UINT8),
    "dynamic-channels": lambda path, to: quantize_dynamic(path, to, per_channel=True, reduce_range=True),
    "dynamic-fused": quantize_optimized,
    "qdq": static("QDQ"),
    "qdq-uint8": static("QDQ", activation_type=UINT8, weight_type=UINT8),
    "qdq-channels": static("QDQ", per_channel=True),
    "qdq-int16": static("QDQ", activation_type=INT16, weight_type=INT8),
    "qoperator": static("QOperator", activation_type=UINT8, weight_type=UINT8),
    "qoperator-int8": static("QOperator"),
    "qoperator-channels": static("QOperator", activation_type=UINT8, weight_type=INT8, per_channel=True),
    "dynamic-all": lambda path, to: optimize_quantized(path, to, quantize_dynamic),
    "qdq-all": lambda path, to: optimize_quantized(path, to, static("QDQ", activation_type=UINT8, weight_type=UINT8)),
    "qdq-int8-all": lambda path, to: optimize_quantized(path, to, static("QDQ")),
    "nbits-2": lambda path, to: quantize_to_bits(path, to, 2, symmetric=True),
    "nbits-2-zeros": lambda path, to: quantize_to_bits(path, to, 2, symmetric=False),
    "nbits-4": lambda path, to: quantize_to_bits(path, to, 4, symmetric=True),
    "nbits-4-zeros": lambda path, to: quantize_to_bits(path, to, 4, symmetric=False),
    "nbits-8": lambda path, to: quantize_to_bits(path, to, 8, symmetric=True),
    "nbits-8-zeros": lambda path, to: quantize_to_bits(path, to, 8, symmetric=False),
}


def is_finite(model):
    """Whether scales are numbers: calibration makes none of masks of minus infinity."""
    scales = {node.input[1] for node in model.graph.node if node.op_type in ("DequantizeLinear", "QuantizeLinear")}
    return all(np.isfinite(numpy_helper.to_array(tensor)).all() for tensor in model.graph.initializer if tensor.name in scales)


def copy_model(path, folder):
    """The model with its weights in one file, and its stored cases: tools write beside what they read."""
    copy = folder / path.parent.name / "model.onnx"
    copy.parent.mkdir()
    onnx.save(onnx.load(path), copy)
    shutil.copy(path.with_suffix(".npz"), copy.with_suffix(".npz"))
    return copy


def apply(tool, path, to):
    """Writes what the tool makes of a model; a Failure where it makes nothing that has a meaning."""
    logging.disable(logging.CRITICAL)
    try:
        TOOLS[tool](copy_model(path, to.parent), to)
    except Exception as error:
        raise suite.Failure(suite.one_line(str(error) or type(error).__name__)) from None
    if not is_finite(onnx.load(to)):
        raise suite.Failure("a scale is infinite")
