# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone tune` makes of a model against optimizers in f64, which get the gradients that Hone gives.

A small model is tuned for some steps. Its weights then have to be those that numpy computes of the same windows, and the losses of the log
those of onnxruntime. Optimizers are also compared with ONNX's own Adam and Momentum, where these are the same formulas. Small language
models have to become better.
"""

import functools
import sys

import suite
import tuning


def all_cases():
    for number, (name, make) in enumerate(tuning.OPTIMIZERS.items()):
        yield name, functools.partial(tuning.check_optimizer, make, 2 * (number % 2), number % 3 != 0, number, tuning.CPU)
    example = suite.ROOT / "examples" / "python-lm" / "model.onnx"
    yield "checkpoints", functools.partial(tuning.check_checkpoints, example, tuning.CPU)
    yield "accumulation", functools.partial(tuning.check_accumulation, tuning.CPU)
    yield "distillation", functools.partial(tuning.check_distillation, tuning.CPU)
    yield "validation", functools.partial(tuning.check_validation, tuning.CPU)
    for name in ("examples/python-lm", "test/models/phi3.optimum"):
        yield f"model/{name}", functools.partial(tuning.check_language_model, suite.ROOT / name / "model.onnx", 1e-3, tuning.CPU)
    if shared := suite.shared_models():
        yield "model/trained", functools.partial(tuning.check_language_model, shared / "lm" / "target" / "optimum" / "model.onnx", 1e-3, tuning.CPU)


if __name__ == "__main__":
    sys.exit(suite.run_main(__doc__, list(all_cases())))
