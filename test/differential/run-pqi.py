# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone calibrate --pqi` says of weights, against the integral in f64 of gradients that Hone gives.

Weights of a small model are pruned, so that numpy knows where the path ends. Of language models the sum has to be what the loss changes by,
with an error that falls as the square of the intervals; and outliers have to go where the file says.
"""

import functools
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

import gradient_models
import suite

VOCABULARY, WIDTH, HIDDEN, CONTEXT = 24, 16, 32, 10
WINDOWS, INTERVALS = 3, 4
CLOSE = 1e-5  # of the largest element: gradients of f32 at weights of f32
LANGUAGE_MODEL = suite.ROOT / "examples" / "python-lm" / "model.onnx"


def make_model(values, as_inputs):
    """Logits of tokens; the weights are initializers or inputs."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("MatMul", ["x", "up"], ["h"]),
             helper.make_node("Tanh", ["h"], ["t"]), helper.make_node("Transpose", ["down"], ["downward"], perm=[1, 0]),
             helper.make_node("MatMul", ["t", "downward"], ["y"]), helper.make_node("MatMul", ["y", "head"], ["logits"])]
    return gradient_models.make_model(nodes, values, VOCABULARY, as_inputs)


def prune(weight):
    """2:4 of a matrix [outputs, inputs] by magnitude."""
    groups = weight.reshape(len(weight), -1, 4)
    rank = np.argsort(np.argsort(-np.abs(groups), axis=-1, kind="stable"), axis=-1)
    return np.where(rank < 2, groups, 0).reshape(weight.shape)


def read_integrals(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    if metadata["format"] != "hone-pqi" or len(metadata["model"]) != 32:
        raise suite.Failure(f"the file's metadata are {metadata}")
    return {name: np.frombuffer(data, np.float32, int(np.prod(about["shape"])), 8 + size + about["data_offsets"][0]).reshape(about["shape"])
            for name, about in header.items() if not name.startswith("__")}


def calibrate(tools, model, tokens, output, *options, context, intervals):
    """The lines that the command prints, by what they are of."""
    np.save(output.with_suffix(".npy"), tokens)
    text = suite.run_tool([tools / "hone", "calibrate", model, "--pqi", "--tokens", output.with_suffix(".npy"), f"--window={context}",
                           f"--intervals={intervals}", "--threads=1", "-o", output, *options])
    lines = (re.match(r"(.+?) {2,}(-?[\d.]+)", line) for line in text.splitlines())
    return {line[1].split(",")[0]: float(line[2]) for line in lines}


def gradients_at(tools, folder, values, tokens):
    """The mean loss of all windows and its gradients, with other weights."""
    rows = np.stack([tokens[CONTEXT * i:CONTEXT * i + CONTEXT + 1] for i in range(WINDOWS)]).astype(np.int64)
    weights = {name: np.ascontiguousarray(value, np.float32) for name, value in values.items()}
    outputs = gradient_models.run_gradients(tools, folder, {"ids": rows[:, :-1], "targets": rows[:, 1:], **weights})
    return float(outputs["loss"]), {name: outputs[f"{name}.gradient"].astype(np.float64) for name in values}


def check_elements(tools):
    random = np.random.default_rng(5)
    weights = {"table": random.standard_normal((VOCABULARY, WIDTH)), "up": random.standard_normal((WIDTH, HIDDEN)) / 4,
               "down": random.standard_normal((WIDTH, HIDDEN)) / 4, "head": random.standard_normal((WIDTH, VOCABULARY)) / 4}
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    ends = {"up": prune(weights["up"].T).T, "down": prune(weights["down"])}
    tokens = random.integers(0, VOCABULARY, WINDOWS * CONTEXT + 1).astype(np.int32)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(make_model(weights, as_inputs=False), folder / "model.onnx")
        onnx.save(make_model(weights, as_inputs=True), folder / "gradients.onnx")
        suite.run_tool([tools / "hone", "compile", folder / "gradients.onnx", "-o", folder / "gradients.hone",
                        f"--gradients={','.join(weights)}", "--loss=cross-entropy"])
        said = calibrate(tools, folder / "model.onnx", tokens, folder / "pqi.safetensors", "--prune=2:4", context=CONTEXT,
                         intervals=INTERVALS)
        at = functools.partial(gradients_at, tools, folder, tokens=tokens)
        moves = {name: end.astype(np.float64) - weights[name] for name, end in ends.items()}
        slopes = [at({**weights, **{name: weights[name] + (i + 0.5) / INTERVALS * move for name, move in moves.items()}})[1]
                  for i in range(INTERVALS)]
        expected = {name: move * sum(slope[name] for slope in slopes) / INTERVALS for name, move in moves.items()}
        found = read_integrals(folder / "pqi.safetensors")
        found = {name: array.T if name == "up" else array for name, array in found.items()}
        compare_elements(found, expected)
        begin, gradients = at(weights)
        numbers = {"loss as it is": begin, "loss compressed": at({**weights, **ends})[0], "sum of PQI": sum(map(np.sum, expected.values())),
                   "first order": sum((move * gradients[name]).sum() for name, move in moves.items())}
        for what, number in numbers.items():
            if not abs(said[what] - number) <= 1e-5:
                raise suite.Failure(f"{what} is said to be {said[what]}, and is {number}")


def compare_elements(found, expected):
    if set(found) != set(expected):
        raise suite.Failure(f"the file has {sorted(found)}, not {sorted(expected)}")
    for name, array in expected.items():
        if found[name].shape != array.shape or not np.abs(found[name] - array).max() <= CLOSE * np.abs(array).max():
            raise suite.Failure(f"the integral of {name} is off by {np.abs(found[name] - array).max():.1e} of {np.abs(array).max():.1e}")


def check_sum(path, options, most, tools):
    """The sum is the change of the loss; with four times the intervals its error is a fraction."""
    errors = []
    with tempfile.TemporaryDirectory() as name:
        for intervals in (1, 4):
            output = pathlib.Path(name) / "pqi.safetensors"
            said = calibrate(tools, path, real_tokens(path, 4 * 64 + 1), output, *options, context=64, intervals=intervals)
            total = sum(array.sum(dtype=np.float64) for array in read_integrals(output).values())
            if not abs(total - said["sum of PQI"]) <= 1e-4 * abs(said["change"]) + 2e-6:
                raise suite.Failure(f"the file's elements have the sum {total}, not {said['sum of PQI']}")
            errors.append(abs(said["sum of PQI"] - said["change"]) / abs(said["change"]))
    if not (errors[1] <= most and errors[1] <= errors[0] / 4 + 1e-4):
        raise suite.Failure(f"the sum is off by {errors[0]:.2%} with one interval and {errors[1]:.2%} with four")


def real_tokens(path, count):
    """Tokens of text where the model's tokenizer is beside it or above."""
    for folder in path.parents[:3]:
        if (folder / "train.tokens.npy").exists():
            return np.load(folder / "train.tokens.npy").reshape(-1)[:count]
    return np.random.default_rng(3).integers(0, 64, count).astype(np.int32)


def check_shares(tools):
    """Outliers of a model go where most of the sensitive elements are, as many as without the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "pqi.safetensors"
        calibrate(tools, LANGUAGE_MODEL, real_tokens(LANGUAGE_MODEL, 2 * 64 + 1), file, "--quantize=int3", context=64, intervals=1)
        integrals = read_integrals(file)
        counts = [count_outliers(tools, folder, *options) for options in ([], [f"--outlier-shares={file}"])]
        every = np.sort(np.concatenate([np.abs(array).ravel() for array in integrals.values()]))[::-1]
        threshold = every[round(len(every) * 0.01) - 1]
        for weight, array in integrals.items():
            panels = -(-len(array) // 16)
            slots = round((np.abs(array) >= threshold).mean() * panels * array.shape[1])
            if abs(counts[1].get(weight, 0) - slots) > 1:
                raise suite.Failure(f"'{weight}' has {counts[1].get(weight, 0)} slots of outliers, not {slots}")
        if counts[0] == counts[1] or not abs(sum(counts[0].values()) - sum(counts[1].values())) <= len(integrals):
            raise suite.Failure(f"slots of outliers are {sum(counts[0].values())} and {sum(counts[1].values())}")


def count_outliers(tools, folder, *options):
    """Slots of each weight, as remarks say them."""
    remarks = folder / "remarks.yaml"
    suite.run_tool([tools / "hone", "compile", LANGUAGE_MODEL, "--quantize=int3", "--outliers=1%", f"--remarks={remarks}", *options, "-o",
                    folder / "model.hone"])
    found = re.findall(r"(\S+?):? +(?:is )?stored in 3 bits an element, and (\d+) slots", remarks.read_text().replace("'", " "))
    return {name.strip("'\"@"): int(slots) for name, slots in found}


BAD = {
    "nothing": ([], "expected --quantize, --target-bits-per-weight or --prune with --pqi"),
    "structured": (["--prune=structured", "--sparsity=25%"], "unsupported compression for --pqi"),
    "both": (["--prune=2:4", "--quantize=int4"], "unsupported compression for --pqi"),
    "short": (["--quantize=int4", "--window=4096"], "expected at least 4096 tokens and one more, a window"),
    "intervals": (["--quantize=int4", "--intervals=0"], "--intervals"),
    "output": (["--quantize=int4", "-o", "/nowhere/pqi.safetensors"], "/nowhere"),
}


def check_bad(options, message, tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", np.arange(130, dtype=np.int32))
        result = subprocess.run([str(word) for word in (tools / "hone", "calibrate", LANGUAGE_MODEL, "--pqi", "--tokens", folder / "tokens.npy",
                                                        "--window=64", "-o", folder / "pqi.safetensors", *options)],
                                capture_output=True, text=True)
        if result.returncode != 1 or message not in result.stderr:
            raise suite.Failure(f"exit code {result.returncode}: {suite.one_line(result.stderr)}")
        if sorted(path.name for path in folder.iterdir()) != ["tokens.npy"]:
            raise suite.Failure("something was written")


def check_vocabulary(tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = np.full(65, 7, np.int32)
        tokens[40] = 100000
        try:
            calibrate(tools, LANGUAGE_MODEL, tokens, folder / "pqi.safetensors", "--quantize=int4", context=64, intervals=1)
        except suite.Failure as failure:
            if "token 100000 at position 40 is outside the vocabulary" in str(failure):
                return
            raise
        raise suite.Failure("a token outside the vocabulary is taken")


def all_cases():
    yield "elements", check_elements
    yield "shares", check_shares
    yield "bad/vocabulary", check_vocabulary
    for name, (options, message) in BAD.items():
        yield f"bad/{name}", functools.partial(check_bad, options, message)
    yield "sum/example", functools.partial(check_sum, LANGUAGE_MODEL, ["--quantize=int3", "--quantize-method=squeezellm"], 0.05)
    if shared := suite.shared_models():
        trained = shared / "lm" / "target" / "optimum" / "model.onnx"
        yield "sum/trained", functools.partial(check_sum, trained, ["--quantize=int3"], 0.02)


if __name__ == "__main__":
    sys.exit(suite.run_main(__doc__, list(all_cases())))
