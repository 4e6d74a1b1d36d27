# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Import and export: what a file says comes back, and onnxruntime computes the same bits from it.

The models are those of run-models.py, through the text form of the IR, and the small ones of export_cases.py, which use
the corners of the format, through its binary form.

Models that are quantized on their way back: onnxruntime computes from the file what Hone does. Nodes of int4 have more
forms and are checked on every model, those of int8 on the models of the checkout.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx

import export_cases
import onnx_difference
import onnx_reference
import suite


QUANTIZED = {"int8": ["--quantize=int8"], "int4": ["--quantize=int4", "--group=32"]}
# Hone multiplies codes without groups with activations of 16 bits where onnxruntime takes floats.
TOLERANCE = 1e-3


def read_cases(path):
    """The inputs of every case of a .npz, as dictionaries."""
    cases = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            case, kind, name = key.split("/", 2)
            if kind == "in":
                cases.setdefault(case, {})[name] = arrays[key]
    return list(cases.values())


def same_bits(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same_bits, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and (a.tolist() == b.tolist() if a.dtype == object
                                                          else a.tobytes() == b.tobytes())


def check_outputs(original, exported, cases):
    before, after = onnx_reference.open_session(original), onnx_reference.open_session(exported)
    names = [output.name for output in before.get_outputs()]
    for inputs in cases:
        for name, a, b in zip(names, before.run(names, inputs), after.run(names, inputs)):
            if not same_bits(a, b):
                raise suite.Failure(f"output '{name}' differs from that of the original")


def check(original, cases, form, tools):
    with tempfile.TemporaryDirectory() as folder:
        ir, exported = pathlib.Path(folder) / f"model{form}", pathlib.Path(folder) / "exported.onnx"
        suite.run_tool([tools / "hone", "import", original, "-o", ir])
        suite.run_tool([tools / "hone", "export", ir, "--allow-external-paths", "-o", exported])
        difference = onnx_difference.find(onnx.load(original), onnx.load(exported))
        if difference:
            raise suite.Failure(difference)
        if cases:  # onnxruntime does not know the newest element types
            check_outputs(original, exported, cases)


def check_quantized(original, cases, form, tools):
    """`form`: a key of QUANTIZED."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        exported, artefact, stored = folder / "exported.onnx", folder / "model.hone", folder / "cases.npz"
        suite.run_tool([tools / "hone", "export", original, *QUANTIZED[form], "-o", exported])
        model = onnx.load(exported)
        if not {node.op_type for node in onnx_reference.all_nodes(model.graph)} & {"DequantizeLinear", "MatMulNBits"}:
            raise suite.Failure("no weight of the exported model is quantized")
        onnx_reference.open_session(exported)
        onnx_reference.keep_activations(model)  # a tie that falls to the other side is one level of one activation, which layers enlarge
        onnx.save(model, exported)
        arrays = onnx_reference.answer(onnx_reference.open_session(exported), {f"case{i}": inputs for i, inputs in enumerate(cases)})
        suite.clear_rows_not_held(arrays, suite.windowed_caches(exported))
        np.savez(stored, **arrays)
        suite.run_tool([tools / "hone", "compile", exported, "-o", artefact])
        suite.run_tool([tools / "hone-run", "run", artefact, "--cases", stored, "--rtol", TOLERANCE, "--atol", TOLERANCE])


def main():
    options = suite.parser(__doc__).parse_args()
    tools = options.build / "bin"
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, (path, read_cases(path.with_suffix(".npz")), ".mlir")) for name, path in suite.models().items()]
        cases += [(f"corner/{name}", (path, inputs, ".mlirbc"))
                  for name, path, inputs in export_cases.write(pathlib.Path(folder))]
        cases = [(name, lambda case=case: check(*case, tools)) for name, case in cases]
        cases += [(f"{form}/{name}", lambda path=path, form=form: check_quantized(
                      path, read_cases(path.with_suffix(".npz")), form, tools))
                  for form in QUANTIZED for name, path in suite.models(own=form == "int8").items()]
        cases = [case for case in cases if options.only in case[0]]
        return suite.run_all(cases, lambda run: run(), options.jobs)


sys.exit(main())
