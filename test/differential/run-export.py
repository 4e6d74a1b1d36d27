# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import and export: what a file says comes back, and onnxruntime computes the same bits from it.

The models are those of run-models.py, through the text form of the IR, and the small ones of export_cases.py, which use
the corners of the format, through its binary form.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import export_cases
import onnx_difference
import suite


def read_cases(path):
    """The inputs of every case of a .npz, as dictionaries."""
    cases = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            case, kind, name = key.split("/", 2)
            if kind == "in":
                cases.setdefault(case, {})[name] = arrays[key]
    return list(cases.values())


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise suite.Failure(f"onnxruntime refuses {path.name}: {suite.one_line(str(error))}") from None


def same_bits(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same_bits, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and (a.tolist() == b.tolist() if a.dtype == object
                                                          else a.tobytes() == b.tobytes())


def check_outputs(original, exported, cases):
    before, after = open_session(original), open_session(exported)
    names = [output.name for output in before.get_outputs()]
    for inputs in cases:
        for name, a, b in zip(names, before.run(names, inputs), after.run(names, inputs)):
            if not same_bits(a, b):
                raise suite.Failure(f"output '{name}' differs from that of the original")


def check(original, cases, form, tools):
    with tempfile.TemporaryDirectory() as folder:
        ir, exported = pathlib.Path(folder) / f"model{form}", pathlib.Path(folder) / "exported.onnx"
        suite.run_tool([tools / "hone", "import", original, "-o", ir])
        suite.run_tool([tools / "hone", "export", ir, "-o", exported])
        difference = onnx_difference.find(onnx.load(original), onnx.load(exported))
        if difference:
            raise suite.Failure(difference)
        if cases:  # onnxruntime does not know the newest element types
            check_outputs(original, exported, cases)


def main():
    options = suite.parser(__doc__).parse_args()
    tools = options.build / "bin"
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, (path, read_cases(path.with_suffix(".npz")), ".mlir")) for name, path in suite.models().items()]
        cases += [(f"corner/{name}", (path, inputs, ".mlirbc"))
                  for name, path, inputs in export_cases.write(pathlib.Path(folder))]
        cases = [case for case in cases if options.only in case[0]]
        return suite.run_all(cases, lambda case: check(*case, tools), options.jobs)


sys.exit(main())
