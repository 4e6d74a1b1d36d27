# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone tune` makes of a model against optimizers in f64, which get the gradients that Hone gives.

A small model is tuned for some steps. Its weights then have to be those that numpy computes of the same windows, and the losses of the log
those of onnxruntime. Optimizers are also compared with ONNX's own Adam and Momentum, where these are the same formulas. Small language
models have to become better.
"""

import functools
import json
import pathlib
import sys
import tempfile

import numpy as np

import suite
import tuned_distillation
import tuned_experts
import tuning

# Experts whose matrices a file has as tensors of three dimensions, and such that it cuts these into.
MIXTURES = ["mixtral.dynamo18", "qwen3_moe.dynamo18"]
CUT = ["mixtral.transformers", "qwen3_moe.transformers"]
APART = 2 * 4 * 3  # tensors of experts: layers, experts and matrices of each
TOGETHER = 2 * 2   # and layers, gate and up, down


def check_precision(path, tools):
    """Steps whose products are rounded to bf16 have the losses and gradients of those in f32, but for that."""
    tokens = np.random.default_rng(2).integers(0, 64, 4 * 32 + 1)
    with tempfile.TemporaryDirectory() as name:
        logs = [tuning.tune(tuning.CPU, tools, pathlib.Path(name), path, tokens, "--learning-rate=1e-3", f"--precision={precision}", steps=6,
                            context=32, batch=2)[1] for precision in ("f32", "bf16")]
    for exact, rounded in zip(*logs, strict=True):
        if not abs(rounded["loss"] - exact["loss"]) <= 0.01 * exact["loss"]:
            raise suite.Failure(f"the loss of step {exact['step']} is {rounded['loss']}, and {exact['loss']} in f32")
        if not abs(rounded["gradient_norm"] - exact["gradient_norm"]) <= 0.05 * exact["gradient_norm"]:
            raise suite.Failure(f"the norm of step {exact['step']} is {rounded['gradient_norm']}, and {exact['gradient_norm']} in f32")


def check_sparse_attention(path, pattern, tools):
    """The loss is that of the model with the same attention, and a step of SGD lowers it along its gradient."""
    rate, context, flags = 2e-4, 192, [f"--attention={pattern[0]}", *pattern[1:], "--attention-sinks=4", "--attention-window=32", "--attention-block-size=16"]
    tokens = np.tile(np.random.default_rng(3).integers(0, 64, context // 4), 5)[:context + 1]

    def loss_of(model, folder):
        suite.run_tool([tools / "hone", "compile", model, *flags, "-o", folder / "model.hone", "--quiet"])
        said = suite.run_tool([tools / "hone", "eval", folder / "model.hone", "--tokens", folder / "tokens.npy", f"--window={context}", "--json"])
        return json.loads(said)["loss"]

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _, (step, *_) = tuning.tune(tuning.CPU, tools, folder, path, tokens, *flags, "--optimizer=sgd", f"--learning-rate={rate}", steps=1,
                                    context=context, batch=1)
        before, after = loss_of(path, folder), loss_of(folder / "tuned.onnx", folder)
        _, (dense, *_) = tuning.tune(tuning.CPU, tools, folder, path, tokens, "--optimizer=sgd", f"--learning-rate={rate}", steps=1,
                                     context=context, batch=1)
    if not abs(step["loss"] - before) <= 1e-4 * before:
        raise suite.Failure(f"expected the loss {before} of the model with this attention, but got {step['loss']}")
    if not abs(step["loss"] - dense["loss"]) > 1e-3 * before:
        raise suite.Failure(f"expected another loss than that of dense attention, {dense['loss']}")
    promised = rate * step["gradient_norm"] * min(step["gradient_norm"], 1)  # gradients are clipped to a norm of 1
    if not abs(before - after - promised) <= 0.1 * promised:
        raise suite.Failure(f"expected the loss to fall by {promised}, but it falls by {before - after}")


def all_cases():
    for number, (name, make) in enumerate(tuning.OPTIMIZERS.items()):
        yield name, functools.partial(tuning.check_optimizer, make, 2 * (number % 2), number % 3 != 0, number, tuning.CPU)
    example = suite.ROOT / "examples" / "python-lm" / "model.onnx"
    yield "checkpoints", functools.partial(tuning.check_checkpoints, example, tuning.CPU)
    yield "precision", functools.partial(check_precision, example)
    for pattern in ("sinks-window", "top-blocks --attention-blocks=2", "quest --attention-blocks=2", "xattention --attention-share=0.4",
                    "sparge --attention-share=0.4 --attention-similarity=-1"):
        yield f"attention/{pattern.split()[0]}", functools.partial(check_sparse_attention, example, pattern.split())
    yield "accumulation", functools.partial(tuning.check_accumulation, tuning.CPU)
    yield "distillation", functools.partial(tuned_distillation.check_distillation, tuning.CPU)
    yield "distillation/features", functools.partial(tuned_distillation.check_features, tuning.CPU)
    yield "validation", functools.partial(tuning.check_validation, tuning.CPU)
    mixture = suite.ROOT / "test" / "models" / "qwen3_moe.optimum" / "model.onnx"
    yield "checkpoints/experts", functools.partial(tuning.check_checkpoints, mixture, tuning.CPU)
    yield "experts/qwen3_moe.optimum", functools.partial(tuned_experts.check_experts, mixture, APART, tuning.CPU)
    for name in ("examples/python-lm", "test/models/phi3.optimum", "test/models/qwen3_moe.optimum"):
        yield f"model/{name}", functools.partial(tuning.check_language_model, suite.ROOT / name / "model.onnx", 1e-3, tuning.CPU)
    if shared := suite.shared_models():
        for name in MIXTURES:
            path = shared / "zoo" / name / "model.onnx"
            yield f"experts/{name}", functools.partial(tuned_experts.check_experts, path, TOGETHER, tuning.CPU)
            yield f"model/{name}", functools.partial(tuning.check_language_model, path, 1e-3, tuning.CPU)
        for name in CUT:
            yield f"experts/{name}", functools.partial(tuned_experts.check_refused, shared / "zoo" / name / "model.onnx", tuning.CPU)
        yield "model/trained", functools.partial(tuning.check_language_model, shared / "lm" / "target" / "optimum" / "model.onnx", 1e-3, tuning.CPU)


if __name__ == "__main__":
    sys.exit(suite.run_main(__doc__, list(all_cases())))
