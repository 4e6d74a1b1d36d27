# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone tune --target=cuda` makes of a model, on the emulated driver (test/emulation): the checks of run-tune.py.

Besides, parameters and moments stay on the GPU: a step copies the tokens there, and numbers back. Products of layers and their gradients
run on kernels of matrices, by the machine's BLAS library where it has one.
"""

import functools
import json
import pathlib
import sys
import tempfile

import numpy as np

import gradient_models
import suite
import tuned_distillation
import tuning

CHIPS = ["sm_80", "sm_90"]
MODEL, LAYERS = suite.ROOT / "test" / "models" / "phi3.optimum" / "model.onnx", 9
CONTEXT, BATCH = 32, 2  # more rows than GEMV takes
# To the GPU by copies, in bytes: the windows and the tokens that come next. Numbers are arguments of kernels.
INPUTS = 2 * BATCH * CONTEXT * 8
# To the host: the loss, the square of the norm, and the corrections.
OUTPUTS = 4 + 8 + 2 * 8


def device_of(chip):
    return tuning.Device(["--target=cuda", f"--chip={chip}"], 50 * tuning.LOSS, tuning.CLOSE)


def report_of(steps, chip, variables, tools):
    """What the driver of a chip counts while the model is tuned for so many steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", np.random.default_rng(3).integers(0, 64, BATCH * CONTEXT + 1))
        command = tuning.tune_command(device_of(chip), tools, folder, MODEL, steps=steps, context=CONTEXT, batch=BATCH)
        suite.run_tool(command, variables={"HONE_EMULATED_REPORT": str(folder / "report.json"), "HONE_EMULATED_CHIP": chip, **variables})
        return json.loads((folder / "report.json").read_text())


def step_report(chip, variables, tools):
    """The launches by kernel, and the bytes of each direction, of one step more."""
    one, two = (report_of(steps, chip, variables, tools) for steps in (1, 2))
    launches = {name: kernel["launches"] - one["kernels"].get(name, {"launches": 0})["launches"] for name, kernel in two["kernels"].items()}
    return launches, {way: two["copies"][way]["bytes"] - one["copies"][way]["bytes"] for way in ("to_device", "to_host")}


def check_step(chip, tools):
    """A layer is three products: its own, and those for the gradients of its input and its weight. Weights and moments are not copied."""
    launches, copied = step_report(chip, {}, tools)
    products = sum(count for name, count in launches.items() if name.startswith(("gemm_", "hopper_gemm")))
    if products != 3 * LAYERS:
        raise suite.Failure(f"a step has {products} products by GEMM, not {3 * LAYERS}")
    if copied["to_device"] != INPUTS or copied["to_host"] != OUTPUTS:
        raise suite.Failure(f"a step copies {copied}")


def check_library(tools):
    """Products of f32 are three of bf16 each."""
    path = suite.use_emulated_driver(tools.parent)
    launches, _ = step_report("sm_90", {"LD_LIBRARY_PATH": f"{path}:{path.parent / 'blas' / 'lib'}"}, tools)
    if launches.get("emulated_product") != 9 * LAYERS:
        raise suite.Failure(f"a step has {launches.get('emulated_product')} products of cuBLASLt, not {9 * LAYERS}")


def check_gradients(tools):
    """The entry `gradients` of an artefact for a GPU against that of the one for the CPU, to 1e-4 of the largest element."""
    ids = np.random.default_rng(1).integers(0, 200, (BATCH, CONTEXT))
    found = []
    for target in ([], device_of("sm_80").flags):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            suite.run_tool([tools / "hone", "compile", MODEL, "--gradients=parameters", "--loss=cross-entropy", "--quiet", *target, "-o",
                            folder / "gradients.hone"])
            found.append(dict(gradient_models.run_gradients(tools, folder, {"input_ids": ids, "targets": np.roll(ids, -1, 1)})))
    for name, expected in found[0].items():
        error = np.abs(found[1][name] - expected).max() / np.abs(expected).max()
        if not error <= 1e-4:
            raise suite.Failure(f"{name} is off by {error:.1e} of its largest element")


def all_cases():
    for number, (name, make) in enumerate(tuning.OPTIMIZERS.items()):
        chip = CHIPS[number % len(CHIPS)]
        yield f"{name}/{chip}", functools.partial(tuning.check_optimizer, make, 2 * (number % 2), number % 3 != 0, number, device_of(chip))
    yield "checkpoints", functools.partial(tuning.check_checkpoints, MODEL, device_of("sm_90"))
    yield "accumulation", functools.partial(tuning.check_accumulation, device_of("sm_80"))
    yield "distillation", functools.partial(tuned_distillation.check_distillation, device_of("sm_90"))
    yield "distillation/features", functools.partial(tuned_distillation.check_features, device_of("sm_80"))
    yield "validation", functools.partial(tuning.check_validation, device_of("sm_80"))
    yield "model", functools.partial(tuning.check_language_model, MODEL, 1e-3, device_of("sm_90"))
    for chip in CHIPS:
        yield f"step/{chip}", functools.partial(check_step, chip)
    yield "library", check_library
    yield "gradients", check_gradients


def main():
    options = suite.parser(__doc__).parse_args()
    suite.use_emulated_driver(options.build)
    chosen = [(name, case) for name, case in all_cases() if options.only in name]
    return suite.run_all(chosen, lambda case: case(options.build / "bin"), options.jobs)


sys.exit(main())
