# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of com.microsoft (microsoft_cases.py), against onnxruntime.

--docs FILE writes the table of all that the installed onnxruntime lists.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

import microsoft_cases
import microsoft_table
import onnx_reference
import suite

TOLERANCE = 1e-4
# Integers of a result that was rounded from a float, which is summed in another order, may be of the other side of a tie.
STEP = 1


def check(case, tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(case.reference or case.model, folder / "model.onnx")
        session = onnx_reference.open_session(folder / "model.onnx")
        names = [value.name for value in session.get_inputs()]
        try:
            expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, {name: case.inputs[name] for name in names})))
        except Exception as error:  # what onnxruntime raises has no class of its own
            raise suite.Failure(f"onnxruntime: {suite.one_line(str(error))}") from None
        # Files have to say how many dimensions a result has; their sizes stay open.
        for value in case.model.graph.output:
            value.CopyFrom(helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, [None] * expected[value.name].ndim))
        onnx.save(case.model, folder / "model.onnx")
        np.savez(folder / "in.npz", **case.inputs)
        suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone"])
        suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"])
        got = dict(np.load(folder / "out.npz"))
    for output, array in expected.items():
        if got[output].shape != array.shape or got[output].dtype != array.dtype:
            raise suite.Failure(f"expected {output} to be {array.dtype}{array.shape}, but got {got[output].dtype}{got[output].shape}")
        allowed = STEP if array.dtype.kind in "iu" else TOLERANCE * np.abs(array).max(initial=1)
        if (worst := np.abs(got[output].astype(np.float64) - array).max(initial=0)) > allowed:
            raise suite.Failure(f"{output} differs by {worst:.3g}")


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of operators into this file")
    options = parser.parse_args()
    cases = {name: case for name, case in microsoft_cases.collect().items() if options.only in name}
    outcomes = dict(suite.run_cases(cases.items(), lambda case: check(case, options.build / "bin"), options.jobs))
    for name, reason in outcomes.items():
        if reason:
            print(f"{name}: {reason}", flush=True)
    if options.docs:
        options.docs.write_text(microsoft_table.write(cases, outcomes, options.build / "bin"))
    failed = sum(reason is not None for reason in outcomes.values())
    return suite.finish(len(outcomes) - failed, failed)


sys.exit(main())
