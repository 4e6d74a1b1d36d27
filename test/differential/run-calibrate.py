# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`hone calibrate`: Hessians and maxima of the inputs of every layer, against numpy over what onnxruntime computes.

The input of each product of the ONNX file becomes an output of a copy of the model. The model of examples/ is compared, and
where the shared folder exists, the trained model in it.
"""

import functools
import hashlib
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import stored_tensors
import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
WINDOW, WINDOWS = 64, 3
# Two programs in f32 whose activations differ by the order of their sums: relative to what both channels hold.
TOLERANCE = 2e-4
METADATA = {"format": "hone-statistics", "version": "1", "tokens": str(WINDOW * WINDOWS)}


def products(graph):
    """The tensor that each weight is multiplied with, by the weight's name."""
    weights = {tensor.name for tensor in graph.initializer}
    return {node.input[1]: node.input[0] for node in graph.node
            if node.op_type == "MatMul" and node.input[1] in weights}


class Reference:
    """Rows of the inputs of all products, by onnxruntime."""

    def __init__(self, path, folder):
        model = onnx.load(path)
        self.inputs = products(model.graph)
        for name in sorted(set(self.inputs.values())):
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        onnx.save(model, folder / "shown.onnx")
        self.session = onnxruntime.InferenceSession(str(folder / "shown.onnx"), providers=["CPUExecutionProvider"])

    def rows(self, tokens):
        """[tokens, K] of each input, over windows that begin with an empty past."""
        known = {i.name: i for i in self.session.get_inputs()}
        past = {name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for name, i in known.items()
                if name.startswith("past_key_values.")}
        names, parts = sorted(set(self.inputs.values())), []
        for window in tokens.reshape(-1, WINDOW):
            feeds = {"input_ids": window[None].astype(np.int64), "attention_mask": np.ones((1, WINDOW), np.int64),
                     "position_ids": np.arange(WINDOW)[None]}
            feeds = {name: array for name, array in feeds.items() if name in known}
            parts.append(self.session.run(names, feeds | past))
        return {name: np.concatenate([part[i].reshape(-1, part[i].shape[-1]) for part in parts])
                for i, name in enumerate(names)}


def random_tokens(path, count):
    table = max((tuple(tensor.dims) for tensor in onnx.load(path).graph.initializer if len(tensor.dims) == 2),
                key=lambda dims: dims[0])
    return np.random.default_rng(1).integers(0, table[0], count).astype(np.int32)


def calibrate(tools, model, tokens, output, *flags, threads=1):
    suite.run_tool([tools / "hone", "calibrate", model, "--tokens", tokens, "-o", output, "--window", WINDOW, *flags],
                   threads=threads)


def compare(weight, got, expected):
    """The statistics of a site with those of [rows, K] in f64."""
    rows = expected.astype(np.float64)
    moment, largest = rows.T @ rows / len(rows), np.abs(rows).max(axis=0)
    if got["rows"] != len(rows):
        raise suite.Failure(f"{weight}: expected {len(rows)} rows, but got {got['rows']}")
    for name, array, allowed in (("second_moment", moment, np.sqrt(np.outer(moment.diagonal(), moment.diagonal()))),
                                 ("absmax", largest, largest)):
        excess = np.abs(got[name] - array) - TOLERANCE * allowed
        if got[name].shape != array.shape or not (excess <= 0).all():
            at = np.unravel_index(np.argmax(excess), excess.shape)
            raise suite.Failure(f"{weight}: expected {name} {array[at]:.6g} at {at}, but got {got[name][at]:.6g}")


def check_statistics(path, load_tokens, tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = load_tokens()
        # What is after the last window, and after --max-tokens, is not used.
        np.save(folder / "tokens.npy", np.concatenate([tokens, tokens[:WINDOW - 1]]))
        calibrate(tools, path, folder / "tokens.npy", folder / "s.safetensors")
        reference = Reference(path, folder)
        rows = reference.rows(tokens)
        metadata, tensors = stored_tensors.read(folder / "s.safetensors")
        if any(metadata.get(key) != value for key, value in METADATA.items()):
            raise suite.Failure(f"expected metadata {METADATA}, but got {metadata}")
        sites = {key.removeprefix("input of "): value for key, value in metadata.items() if key.startswith("input of ")}
        if sites.keys() != reference.inputs.keys():
            raise suite.Failure(f"expected the inputs of {sorted(reference.inputs)}, but got {sorted(sites)}")
        for weight, site in sites.items():
            got = {what: tensors[f"{site}.{what}"] for what in ("second_moment", "absmax", "rows")}
            compare(weight, got, rows[reference.inputs[weight]])
        check_names(path, sites, tools, folder)


def check_names(path, sites, tools, folder):
    """The names are those of the parameters that passes see, and weights that share an input share a site."""
    suite.run_tool([tools / "hone", "compile", path, "--stop-after=raise", "-o", folder / "raised.mlir"])
    text = (folder / "raised.mlir").read_text()
    names = set(re.findall(r'hone\.param @"?([^" ]+)"? :', text))
    if not sites.keys() <= names:
        raise suite.Failure(f"expected parameters of the model, but got {sorted(sites.keys() - names)}")
    inputs = products(onnx.load(path).graph)
    if len(set(sites.values())) != len(set(inputs.values())):
        raise suite.Failure(f"expected {len(set(inputs.values()))} sites, but got {len(set(sites.values()))}")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_bytes(tools):
    """The same run, which measures what errors cost as well, gives the same bytes, from the ONNX file and from its IR; another model has another fingerprint."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", random_tokens(EXAMPLE, 3 * WINDOW))
        suite.run_tool([tools / "hone", "import", EXAMPLE, "-o", folder / "model.mlirbc"])
        model = onnx.load(EXAMPLE)
        weight = next(tensor for tensor in model.graph.initializer if tensor.name in products(model.graph))
        weight.raw_data = weight.raw_data[4:8] + weight.raw_data[4:]
        onnx.save(model, folder / "other.onnx")
        digests, fingerprints = [], []
        for number, path in enumerate((EXAMPLE, EXAMPLE, folder / "model.mlirbc", folder / "other.onnx")):
            output = folder / f"{number}.safetensors"
            calibrate(tools, path, folder / "tokens.npy", output, "--max-tokens", 2 * WINDOW, "--cost-tokens", WINDOW,
                      "--threads", 2, threads=2)
            digests.append(digest(output))
            fingerprints.append(stored_tensors.read(output)[0]["model"])
        if len(set(digests[:3])) != 1 or not re.fullmatch("[0-9a-f]{32}", fingerprints[0]):
            raise suite.Failure(f"expected the same bytes, but got {digests[:3]}")
        check_costs(*stored_tensors.read(folder / "0.safetensors"))
        if fingerprints[3] == fingerprints[0]:
            raise suite.Failure("expected another fingerprint of another model")


def check_costs(metadata, tensors):
    """Of every weight whose input was measured, and of the table of embeddings."""
    weights = {key.removeprefix("input of ") for key in metadata if key.startswith("input of ")}
    costs = {key.removeprefix("cost of "): float(cost) for key, cost in tensors.items() if key.startswith("cost of ")}
    if not weights < costs.keys() or not all(0 < cost < np.inf for cost in costs.values()):
        raise suite.Failure(f"expected what errors of {sorted(weights)} and of a table cost, but got {costs}")


def check_not_finite(tools):
    """An activation that is no number: the message names the first layer that reads it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = onnx.load(EXAMPLE)
        np.save(folder / "tokens.npy", random_tokens(EXAMPLE, WINDOW))
        weight = next(tensor for tensor in model.graph.initializer if tensor.name == "onnx::MatMul_763")
        weight.raw_data = np.full(weight.dims, np.nan, np.float32).tobytes()
        onnx.save(model, folder / "nan.onnx")
        try:
            calibrate(tools, folder / "nan.onnx", folder / "tokens.npy", folder / "s.safetensors")
        except suite.Failure as failure:
            expected = "expected the input of 'onnx::MatMul_764' and 1 more to be finite, but got nan in channel 0 of row 0"
            if expected not in str(failure):
                raise suite.Failure(f"expected '{expected}', but got '{failure}'") from None
        else:
            raise suite.Failure("expected a failure at an activation that is nan")
        check_left(folder, {"tokens.npy", "nan.onnx"})


def check_left(folder, expected):
    left = {path.name for path in folder.iterdir()}
    if left != expected:
        raise suite.Failure(f"expected {sorted(expected)}, but got {sorted(left)}")


def check_interrupt(tools):
    """A run that is interrupted while it measures leaves nothing, and what was there before stays."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", random_tokens(EXAMPLE, 1 << 22))
        (folder / "s.safetensors").write_text("of before")
        process = subprocess.Popen([tools / "hone", "calibrate", EXAMPLE, "--tokens", folder / "tokens.npy", "-o",
                                    folder / "s.safetensors"], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(folder.glob("*/model.hone/manifest.json")):
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=suite.TIMEOUT_SECONDS)
        if process.returncode != -signal.SIGINT:
            raise suite.Failure(f"expected to end by SIGINT, but got {process.returncode}: {errors}")
        check_left(folder, {"tokens.npy", "s.safetensors"})
        if (folder / "s.safetensors").read_text() != "of before":
            raise suite.Failure("expected the file of before")


def cases():
    yield "examples/python-lm", functools.partial(check_statistics, EXAMPLE,
                                                  functools.partial(random_tokens, EXAMPLE, WINDOW * WINDOWS))
    yield "the same bytes", check_bytes
    yield "not finite", check_not_finite
    yield "interrupt", check_interrupt
    if shared := suite.shared_models():
        lm = shared / "lm"
        load = lambda: np.load(lm / "train.tokens.npy", mmap_mode="r")[:WINDOW * WINDOWS]
        for path in sorted(lm.glob("*/optimum/model.onnx")):
            yield f"{path.parent.parent.name}/optimum", functools.partial(check_statistics, path, load)


def main():
    options = suite.parser(__doc__).parse_args()
    chosen = [(name, case) for name, case in cases() if options.only in name]
    return suite.run_all(chosen, lambda case: case((options.build / "bin").resolve()), options.jobs)


sys.exit(main())
