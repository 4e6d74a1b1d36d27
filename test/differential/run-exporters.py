# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small random models of packages that write ONNX (exporters/), against onnxruntime.

Case PACKAGE/MODEL. Packages need not be of this interpreter: --python FILE, which may be repeated, names others. A package that none has is
skipped by its name. --list prints a line for every case, --docs writes their table, and --keep FOLDER keeps the models.
"""

import pathlib
import subprocess
import sys
import tempfile

import exporters_table
import numpy as np
import onnx_reference
import raised_layers
import suite

SCRIPTS = pathlib.Path(__file__).with_name("exporters")
# What each script needs beside the package that it is named after.
NEEDS = {"spox": "spox", "skl2onnx": "skl2onnx", "jax2onnx": "jax2onnx", "tf2onnx": "tf2onnx, tensorflow", "paddle2onnx": "paddle2onnx, paddle"}
KNOWN = pathlib.Path(__file__).with_name("exporters.known")
TOLERANCE = 1e-4  # f32 in another order of summation, over a few layers


class Skip(Exception):
    """A case that has nothing to compare with, with its reason."""


def find_python(package, pythons):
    """The first interpreter that has a package, or None."""
    return next((python for python in pythons
                 if subprocess.run([python, "-c", f"import {NEEDS[package]}"], capture_output=True).returncode == 0), None)


def make_models(package, python, folder):
    folder.mkdir(parents=True, exist_ok=True)
    suite.run_script(python, SCRIPTS / f"with_{package}.py", folder)
    return sorted({path.stem for path in folder.iterdir() if path.suffix in (".onnx", ".failed")})


def stack_maps(value):
    """What Hone gives for a sequence of maps: their values, a row for each; other values are as they are."""
    return np.array([list(each.values()) for each in value], np.float32) if isinstance(value, list) else value


def expected_outputs(path, inputs):
    try:
        session = onnx_reference.open_session(path)
        outputs = [output.name for output in session.get_outputs()]
        return {name: stack_maps(value) for name, value in zip(outputs, session.run(outputs, inputs))}
    except Exception as error:  # what onnxruntime raises has no class of its own
        raise Skip(f"onnxruntime: {suite.one_line(str(error))}") from None


def compare(got, expected):
    for name, array in expected.items():
        if got[name].shape != array.shape or got[name].dtype != array.dtype:
            raise suite.Failure(f"expected '{name}' to be {array.dtype}{array.shape}, but got {got[name].dtype}{got[name].shape}")
        allowed = TOLERANCE * max(1, np.abs(array).max(initial=0)) if array.dtype.kind == "f" else 0
        if (worst := np.abs(got[name].astype(np.float64) - array).max(initial=0)) > allowed:
            raise suite.Failure(f"'{name}' differs by {worst:.3g}")


def check(path, tools, layers):
    if (failed := path.with_suffix(".failed")).exists():
        raise Skip(f"cannot be made: {suite.one_line(failed.read_text())}")
    inputs = dict(np.load(path.with_suffix(".npz")))
    expected = expected_outputs(path, inputs)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        suite.run_tool([tools / "hone", "compile", path, "-o", folder / "model.hone"])
        suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", path.with_suffix(".npz"),
                        "--outputs", folder / "out.npz"])
        compare(dict(np.load(folder / "out.npz")), expected)
    if (wanted := path.with_suffix(".layers")).exists():
        counts = dict(zip(raised_layers.KINDS, map(int, wanted.read_text().split())))
        layers[path] = counts, raised_layers.found(path, tools)


def run(options, folder):
    """Cases with their reasons, those skipped with theirs, and layers of transformers."""
    pythons, absent, paths = [sys.executable, *options.python], [], {}
    for package in sorted(NEEDS):
        if python := find_python(package, pythons):
            paths |= {f"{package}/{name}": folder / package / f"{name}.onnx" for name in make_models(package, python, folder / package)}
        else:
            absent.append(package)
            print(f"{package}: skipped, not installed", flush=True)
    skipped, layers = {}, {}

    def outcome(case):
        name, path = case
        try:
            check(path, options.build / "bin", layers)
        except Skip as skip:
            skipped[name] = str(skip)

    cases = [(name, (name, path)) for name, path in paths.items() if options.only in name]
    reasons = {}
    for name, reason in suite.run_cases(cases, outcome, options.jobs):
        reasons[name] = reason
        if reason or options.list:
            print(f"{name}: {reason or skipped.get(name) or 'equal'}", flush=True)
    found = {f"{path.parent.name}/{path.stem}": raised_layers.lacking(*counts) for path, counts in layers.items()}
    return reasons, skipped, absent, found


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--python", action="append", default=[], help="another interpreter that may have packages")
    parser.add_argument("--list", action="store_true", help="print a line for every case")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder where the models stay")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of cases into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        reasons, skipped, absent, layers = run(options, options.keep or pathlib.Path(name))
    lacking = {name: f"raised {lacking}" for name, lacking in layers.items() if lacking}
    if options.docs:
        options.docs.write_text(exporters_table.write(reasons, skipped, absent, lacking, len(layers)))
    for name, text in lacking.items():
        print(f"{name}: {text}", flush=True)
    known = suite.read_known(KNOWN)
    reasons = {name: reason or lacking.get(name) for name, reason in reasons.items()}
    if passing := [name for name, reason in reasons.items() if name in known and not reason and name not in skipped]:
        print(f"{', '.join(passing)}: pass; remove them from {KNOWN.name}", flush=True)
    skipped |= {name: known[name] for name, reason in reasons.items() if name in known and reason}
    failed = len(passing) + sum(reason is not None and name not in known for name, reason in reasons.items())
    return suite.finish(len(reasons) - failed - len(skipped), failed, len(skipped) + len(absent))


sys.exit(main())
