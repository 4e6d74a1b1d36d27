# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts that make models with an exporter's package share: they write each model beside its inputs, and why one could not be made.

A script is run as `python with_PACKAGE.py FOLDER [NAMES...]` by an interpreter that has the package, which need not be that of the tests.
"""

import pathlib
import sys

import numpy as np


def random(*shape, seed=0, kind=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def tokens(*shape, seed=0, below=64, kind=np.int64):
    return np.random.default_rng(seed).integers(0, below, shape).astype(kind)


def main(models, transformers=()):
    """Calls each function of `models`, by name, with the file to write; it gives the inputs as arrays by name. A file NAME.failed says why
    a package could not make a model, and NAME.layers how many layers of attention, norms, MLPs and experts a transformer has."""
    folder, chosen = pathlib.Path(sys.argv[1]), sys.argv[2:] or models
    for name in chosen:
        try:
            inputs = models[name](folder / f"{name}.onnx")
        except (Exception, SystemExit) as error:  # packages raise what they like
            (folder / f"{name}.failed").write_text(f"{type(error).__name__}: {error}")
            continue
        np.savez(folder / f"{name}.npz", **inputs)
        if name in transformers:
            (folder / f"{name}.layers").write_text(" ".join(map(str, transformers[name])))
