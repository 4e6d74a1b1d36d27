# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own node tests: each compiled, run and compared at the tolerance that the test gives.

Cases that are known not to pass are listed with their reason in node-tests-refused.txt. They count as skipped; one that
passes although it is listed, or that crashes, is a failure. --update writes the list and docs/operators.md anew.
"""

import collections
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.defs
from onnx.backend.test.case.node import collect_testcases

import suite

REFUSED = pathlib.Path(__file__).parent / "node-tests-refused.txt"
TABLE = suite.ROOT / "docs" / "operators.md"
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def is_training(name, node):
    return "training" in name or any(a.name == "training_mode" and a.i for a in node.attribute)


def is_covered(case):
    """Default domain, tensors in and out; no training, sequences, optionals, strings, images, and nothing random."""
    values = [*case.model.graph.input, *case.model.graph.output]
    if any(value.type.WhichOneof("value") != "tensor_type" for value in values):
        return False
    if any(value.type.tensor_type.elem_type == onnx.TensorProto.STRING for value in values):
        return False
    if any(opset.domain not in ("", "ai.onnx") for opset in case.model.opset_import):
        return False
    return not any(node.op_type in RANDOM or node.op_type == "ImageDecoder" or "Optional" in node.op_type
                   or is_training(case.name, node) for node in nodes_of(case.model.graph))


def plain(array):
    """An array in the types that .npy files know: narrow ones by their bits, as hone-run takes and gives them."""
    array = np.asarray(array)
    if array.dtype.kind == "V" or array.dtype.name.startswith(("int4", "uint4", "int2", "uint2", "float", "bfloat")):
        if array.dtype.name in ("float16", "float32", "float64"):
            return array
        signed = array.dtype.name.startswith("int")
        return array.view({1: np.int8 if signed else np.uint8, 2: np.uint16}[array.dtype.itemsize])
    return array


def compare(name, got, expected, case):
    expected = np.asarray(expected)
    if got.shape != expected.shape:
        raise suite.Failure(f"{name}: expected shape {expected.shape}, but got {got.shape}")
    if got.dtype != plain(expected).dtype:
        raise suite.Failure(f"{name}: expected {expected.dtype}, but got {got.dtype}")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, expected = got.view(expected.dtype).astype(wide), expected.astype(wide)
    if not np.allclose(got, expected, rtol=case.rtol, atol=case.atol, equal_nan=True):
        with np.errstate(all="ignore"):
            worst = np.nanmax(np.abs(got - expected), initial=0)
        raise suite.Failure(f"{name}: values differ by up to {worst:.3g}")


def check(case, tools):
    inputs, outputs = ([value.name for value in values] for values in (case.model.graph.input, case.model.graph.output))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(case.model, folder / "model.onnx")
        suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone"])
        for given, expected in case.data_sets:
            np.savez(folder / "in.npz", **{name: plain(array) for name, array in zip(inputs, given)})
            suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz",
                            "--outputs", folder / "out.npz"])
            with np.load(folder / "out.npz") as results:
                for name, array in zip(outputs, expected):
                    if name:
                        compare(name, results[name], array, case)


def operator_of(case):
    """The operator that a case is about; its expanded form counts for the same one."""
    nodes = list(case.model.graph.node)
    if len(nodes) == 1:
        return nodes[0].op_type
    stem = case.name.removeprefix("test_").split("_expanded")[0].replace("_", "")
    names = [schema.name for schema in onnx.defs.get_all_schemas() if stem.startswith(schema.name.lower())]
    return max(names, key=len, default=nodes[-1].op_type)


def read_refused():
    lines = REFUSED.read_text().splitlines() if REFUSED.exists() else []
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def table_row(name, reasons):
    versions = sorted({schema.since_version for schema in onnx.defs.get_all_schemas_with_history()
                       if schema.name == name and schema.domain == ""})
    good = sum(reason is None for reason in reasons)
    status = "yes" if good == len(reasons) else "in part" if good else "no"
    why = "; ".join(sorted({reason.replace("|", "\\|") for reason in reasons if reason}))
    return f"| {name} | {', '.join(map(str, versions))} | {status} | {good} of {len(reasons)} | {why} |"


def write_reports(cases, reasons):
    failing = [f"{case.name}: {reasons[case.name]}" for case in cases if reasons[case.name]]
    REFUSED.write_text("# Node tests that do not pass, and why. Written by run-node-tests.py --update.\n"
                       + "".join(line + "\n" for line in sorted(failing)))
    by_operator = collections.defaultdict(list)
    for case in cases:
        by_operator[operator_of(case)].append(reasons[case.name])
    good = len(cases) - len(failing)
    TABLE.write_text(f"""# Operators

What Hone compiles of ONNX {onnx.__version__}, measured by the node tests of the standard: those of the default domain
whose inputs and outputs are tensors, without training, sequence, optional, string, image and random operators. Each is
compiled, run and compared at the test's own tolerance. **{good} of {len(cases)} pass ({100 * good / len(cases):.1f} %).**

Written by `test/differential/run-node-tests.py --update`.

| operator | versions | compiled | tests | what does not pass |
| --- | --- | --- | --- | --- |
""" + "".join(table_row(name, by_operator[name]) + "\n" for name in sorted(by_operator)))


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--update", action="store_true", help="write the list of known failures and the table in docs/")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in collect_testcases(None) if is_covered(case) and options.only in case.name]
    refused = {} if options.update else read_refused()
    passed = failed = skipped = 0
    reasons = {}
    results = suite.run_cases([(case.name, case) for case in cases],
                              lambda case: check(case, options.build / "bin"), options.jobs)
    for name, reason in results:
        reasons[name] = reason
        if reason and name in refused and "crashed" not in reason:
            skipped += 1
        elif reason or name in refused:
            failed += 1
            print(f"{name}: {reason or 'passes, but is listed in ' + REFUSED.name}", flush=True)
        else:
            passed += 1
    if options.update:
        write_reports(cases, reasons)
    return suite.finish(passed, failed, skipped)


sys.exit(main())
