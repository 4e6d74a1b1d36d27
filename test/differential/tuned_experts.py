# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone tune` writes of the experts of a mixture, whose matrices a file has one by one or in one tensor."""

import pathlib
import re
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import suite
import tuning


def listed_experts(path, tools, folder):
    """The initializers of experts, and the axis of the inputs of each matrix in them."""
    suite.run_tool([tools / "hone", "compile", path, "--stop-after=raise", "-o", folder / "raised.mlir"])
    text = (folder / "raised.mlir").read_text()
    experts = {}
    reads = [(get, name, function) for function in text.split("func.func ")[1:]
             for get, name in re.findall(r'(%\S+) = hone\.get_param @"?([^" ]+)"?', function)]
    for get, name, function in reads:
        if not re.search(rf"hone\.moe [^\n]*{get}\b", function):
            continue
        param = re.search(rf'hone\.param @"?{re.escape(name)}"? : [^\n]*', text).group()
        joined = re.search(r"hone\.joined = \[([^\]]*)\]", param)
        for each in re.findall(r'"([^"]*)"', joined.group(1)) if joined else [name]:
            experts[each] = -2 if "transposed" in param else -1
    return experts


def check_experts(path, expected, device, tools):
    """Zeros of 2:4 that pruning makes of each expert are in the file that is pruned and in the one that is tuned, and other elements are
    trained."""
    tokens = np.random.default_rng(2).integers(0, 64, 4 * tuning.CONTEXT + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        experts = listed_experts(path, tools, folder)
        if len(experts) != expected:
            raise suite.Failure(f"these are the parameters of experts: {sorted(experts)}")
        suite.run_tool([tools / "hone", "export", path, "--prune=2:4", "-o", folder / "pruned.onnx"])
        tuned, _ = tuning.tune(device, tools, folder, path, tokens, "--prune=2:4", "--learning-rate=1e-3")
        before, after = ({tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
                         for model in (onnx.load(folder / "pruned.onnx"), tuned))
        for each, axis in experts.items():
            groups = np.moveaxis(before[each], axis, -1)
            if np.any((groups.reshape(*groups.shape[:-1], -1, 4) != 0).sum(-1) != 2):
                raise suite.Failure(f"{each} is not 2:4")
            if np.any((after[each] != 0) & (before[each] == 0)):
                raise suite.Failure(f"{each} has other zeros than were pruned")
            if np.array_equal(before[each], after[each]):
                raise suite.Failure(f"{each} is not trained")


def check_refused(path, device, tools):
    """What cannot be written is refused before the first step."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", np.arange(4 * tuning.CONTEXT + 1, dtype=np.int32) % 64)
        command = tuning.tune_command(device, tools, folder, path, steps=1, context=tuning.CONTEXT, batch=1)
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        said = result.stderr.strip().splitlines()[-1:]
        if result.returncode != 1 or not said or "cannot write the parameter 'transpose_" not in said[0] or "loss" in result.stderr:
            raise suite.Failure(f"expected a refusal, but it ended with {result.returncode}: {result.stderr}")
        if (folder / "tuned.onnx").exists():
            raise suite.Failure("expected no file")
