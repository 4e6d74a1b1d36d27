# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models as exporters write them, against onnxruntime's outputs at several batch sizes, lengths and pasts.

Each model is called as the file has it, and decoders also through @forward (sessions.py).

Beside NAME.onnx lies NAME.npz with `case<i>/in/<input>` and `case<i>/out/<output>`. The models of test/models are in
every checkout; those of the shared folder's zoo are added where it exists.
"""

import pathlib
import sys
import tempfile

import sessions
import suite

KNOWN = pathlib.Path(__file__).with_name("models.known")
TOLERANCE = 1e-4  # f32 in another order of summation, over a few layers


def check(path, build):
    tools = build / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        artefact = folder / "model.hone"
        suite.run_tool([tools / "hone", "compile", path, "-o", artefact])
        suite.run_tool([tools / "hone-run", "run", artefact, "--cases", suite.cases_of(path, folder),
                        "--rtol", TOLERANCE, "--atol", TOLERANCE])
        sessions.check(path, artefact, build / "lib" / "libhone_rt.so")


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, path) for name, path in suite.models().items() if options.only in name]
    return suite.run_with_known(cases, lambda path: check(path, options.build), options.jobs, KNOWN)


sys.exit(main())
