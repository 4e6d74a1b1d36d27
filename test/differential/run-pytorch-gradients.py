# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of decoders in f32, of every parameter, beside those of PyTorch.

--python FILE names an interpreter with PyTorch, transformers and onnxscript, which makes small random decoders and exports them
(pytorch_gradients.py); without it all are skipped. --model FOLDER, which may be repeated, adds one in Hugging Face's form.
"""

import functools
import json
import pathlib
import sys
import tempfile

import gradient_models
import numpy as np
import onnx
import suite
from onnx import numpy_helper

# Of the norm of a gradient. Both sum in f32, in other orders: each of the hundreds of terms of a sum is rounded by 2^-24.
TOLERANCE = 1e-5


def check(path, tools):
    expected = dict(np.load(path.with_suffix(".npz")))
    ids, targets, loss, names = (expected.pop(name) for name in ("ids", "targets", "loss", "names"))
    names = json.loads(str(names))
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    with tempfile.TemporaryDirectory() as name:
        actual_loss, gradients = gradient_models.initializer_gradients(tools, pathlib.Path(name), path, {"input_ids": ids, "targets": targets}, values)
    if not abs(actual_loss - loss) <= TOLERANCE * loss:
        raise suite.Failure(f"the loss is {actual_loss}, not {loss}")
    sums = {}
    for initializer, gradient in gradients.items():
        if initializer in names:
            parameter, is_transposed = names[initializer]
            sums[parameter] = sums.get(parameter, 0) + (gradient.swapaxes(-1, -2) if is_transposed else gradient)
    if lacking := sorted(set(expected) - set(sums)):
        raise suite.Failure(f"no gradient of {', '.join(lacking)}")
    errors = {name: np.linalg.norm(sums[name] - gradient) / np.linalg.norm(gradient) for name, gradient in expected.items()}
    name = max(errors, key=errors.get)
    print(f"{path.stem}: {len(errors)} parameters, largest difference {errors[name]:.1e} ({name})", flush=True)
    if not errors[name] <= TOLERANCE:
        raise suite.Failure(f"the gradient of {name} is off by {errors[name]:.1e} of its norm")


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--python", help="an interpreter with PyTorch and transformers")
    parser.add_argument("--model", action="append", default=[], type=pathlib.Path, help="a folder in Hugging Face's form")
    options = parser.parse_args()
    if not options.python:
        print("skipped: no --python with PyTorch")
        return suite.finish(0, 0, 1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        suite.run_script(options.python, pathlib.Path(__file__).with_name("pytorch_gradients.py"), folder, *options.model)
        return suite.run_chosen(options, [(path.stem, functools.partial(check, path)) for path in sorted(folder.glob("*.onnx"))])


sys.exit(main())
