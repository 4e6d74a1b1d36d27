# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models as exporters write them, against onnxruntime's outputs at several batch sizes, lengths and pasts.

Beside NAME.onnx lies NAME.npz with `case<i>/in/<input>` and `case<i>/out/<output>`. The models of test/models are in
every checkout; those of the shared folder's zoo are added where it exists.
"""

import pathlib
import sys
import tempfile

import suite

KNOWN = pathlib.Path(__file__).with_name("models.known")
TOLERANCE = 1e-4  # f32 in another order of summation, over a few layers


def models():
    folders = [suite.ROOT / "test" / "models"]
    if shared := suite.shared_models():
        folders.append(shared / "zoo")
    found = {}
    for folder in folders:
        for path in sorted(folder.glob("*/*.onnx")):
            if path.with_suffix(".npz").exists():
                found[f"{path.parent.name}/{path.stem}"] = path
    return found


def check(path, tools):
    with tempfile.TemporaryDirectory() as folder:
        artefact = pathlib.Path(folder) / "model.hone"
        suite.run_tool([tools / "hone", "compile", path, "-o", artefact])
        suite.run_tool([tools / "hone-run", "run", artefact, "--cases", path.with_suffix(".npz"),
                        "--rtol", TOLERANCE, "--atol", TOLERANCE])


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(name, path) for name, path in models().items() if options.only in name]
    return suite.run_with_known(cases, lambda path: check(path, options.build / "bin"), options.jobs, KNOWN)


sys.exit(main())
