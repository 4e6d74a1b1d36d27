# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_half.py MODEL.onnx FOLDER: the model in f16 as onnxruntime's converter writes it: half.onnx, and casts.onnx, whose inputs and
outputs stay f32 and whose nodes are not in order.
"""

import pathlib
import sys

import onnx
from onnxruntime.transformers.float16 import convert_float_to_float16


def main():
    for name, keeps in (("half", False), ("casts", True)):
        model = convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=keeps)
        onnx.save(model, pathlib.Path(sys.argv[2]) / f"{name}.onnx")


main()
