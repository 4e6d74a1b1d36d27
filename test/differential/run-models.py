# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models as exporters write them, against onnxruntime's outputs at several batch sizes, lengths and pasts.

Each model is called as the file has it, and decoders also through @forward (sessions.py). Files that let products round
activations are compared without that, and then as they are: rounding may cost what it costs in onnxruntime (onnx_reference.py).

Beside NAME.onnx lies NAME.npz with `case<i>/in/<input>` and `case<i>/out/<output>`. The models of test/models are in
every checkout; those of the shared folder's zoo are added where it exists.
"""

import pathlib
import sys
import tempfile

import numpy as np

import onnx_reference
import sessions
import suite

KNOWN = pathlib.Path(__file__).with_name("models.known")
TOLERANCE = 1e-4  # f32 in another order of summation, over a few layers
# Kernels of integers round activations that are to stay as they are to 16 bits, half a step of 1 / 32767 of the largest of their group:
# over the products of two layers 5e-5 in the root of the mean square of outputs near 1, of thousands of which the worst is 5 times that.
INTEGERS = 3e-4


def check(path, build):
    tools = build / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        artefact = folder / "model.hone"
        exact = onnx_reference.without_rounding(path, folder)
        tolerance = TOLERANCE if exact == path else INTEGERS
        suite.run_tool([tools / "hone", "compile", exact, "-o", artefact])
        suite.run_tool([tools / "hone-run", "run", artefact, "--cases", suite.cases_of(exact, folder),
                        "--rtol", tolerance, "--atol", tolerance])
        sessions.check(exact, artefact, build / "lib" / "libhone_rt.so", tolerance)
        if exact != path:
            suite.run_tool([tools / "hone", "compile", path, "-o", artefact])
            onnx_reference.check_rounding(path, exact, lambda inputs: run(tools, artefact, inputs, folder))


def run(tools, artefact, inputs, folder):
    """What the artefact makes of the inputs of a case."""
    np.savez(folder / "in.npz", **inputs)
    suite.run_tool([tools / "hone-run", "run", artefact, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"])
    return dict(np.load(folder / "out.npz"))


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, path) for name, path in suite.models().items() if options.only in name]
    return suite.run_with_known(cases, lambda path: check(path, options.build), options.jobs, KNOWN)


sys.exit(main())
