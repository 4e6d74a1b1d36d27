# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What onnxruntime's tools make of the small models (ort_tools.py), against onnxruntime on the same files.

Case MODEL/TOOL. One that the tool, or onnxruntime with the tool's file, cannot do is skipped. --list prints a line for every case: equal,
skipped, or why not; --all takes every model that there is, --architectures one export of each, and --docs writes their table. --keep
FOLDER keeps the files with inputs, as exported_models.py of benchmarks/peers reads them.
"""

import pathlib
import shutil
import sys
import tempfile

import numpy as np

import onnx_reference
import ort_tools
import ort_tools_table
import raised_layers
import suite

MODELS = ("bert.optimum", "gpt2.optimum", "phi3.optimum")
TOLERANCE = 1e-4  # f32 in another order of summation, over a few layers
# Activations that a file rounds to 8 bits fall to another side of a tie, or are rounded in a row of their own and with a sign: one
# step may then be two of onnxruntime's, which has one scale for a tensor and leaves the sign out where there is none.
ROUNDED = 2.0
# Where a router chooses among rounded logits, a token on one side of a tie goes to another expert, with another answer: in onnxruntime's
# as in ours. Models with experts may have as large an error as they like in one row of four.
ROUTED = 0.75


class Skip(Exception):
    """A case that has nothing to compare with, with its reason."""


def with_types(inputs, session):
    """The inputs as a session takes them: those that a tool made halves are narrowed."""
    kinds = {value.name: value.type for value in session.get_inputs()}
    return {name: array.astype(np.float16) if kinds[name] == "tensor(float16)" else array
            for name, array in inputs.items() if name in kinds}


def make(case, folder):
    """The tool's file, and for each stored case of the model its inputs, what the model answers and what the file does."""
    path, tool = case
    made = folder / "model.onnx"
    try:
        ort_tools.apply(tool, path, made)
        session = onnx_reference.open_session(made)
        names = [output.name for output in session.get_outputs()]
        answers = []
        for stored in suite.stored_cases(path).values():
            inputs = with_types(stored["in"], session)
            answers.append((inputs, stored["out"], dict(zip(names, session.run(names, inputs)))))
    except suite.Failure as failure:
        raise Skip(str(failure)) from None
    except Exception as error:  # what onnxruntime raises has no class of its own
        raise Skip(f"onnxruntime: {suite.one_line(str(error))}") from None
    return made, answers


def error(got, exact, share=1.0):
    """The root mean square over the nearest `share` of the rows."""
    rows = np.sort(np.mean(np.square(got.astype(np.float64) - exact), axis=-1), axis=None)
    return np.sqrt(np.mean(rows[:int(np.ceil(share * rows.size))])) if rows.size else 0.0


def compare(got, exact, expected, has_experts):
    for name, array in expected.items():
        if got[name].shape != array.shape:
            raise suite.Failure(f"expected '{name}' to have shape {array.shape}, but got {got[name].shape}")
        if np.allclose(got[name].astype(np.float64), array, rtol=TOLERANCE, atol=TOLERANCE):
            continue
        shares = (1.0, ROUTED) if has_experts else (1.0,)
        if not any(error(got[name], exact[name], share) <= ROUNDED * error(array, exact[name], share) for share in shares):
            cost, allowed = (error(value, exact[name]) for value in (got[name], array))
            raise suite.Failure(f"'{name}' is {cost:.3g} from the model's, onnxruntime's {allowed:.3g}")


def keep(made, inputs, folder, case):
    path, tool = case
    to = folder / path.parent.name / path.stem / f"{tool}.onnx"
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(made, to)
    np.savez(to.with_suffix(".npz"), **inputs)


def check(case, tools, count=None, kept=None):
    """Compares a case; `count` is called with the tool's file before, and `kept` is where the file stays."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made, answers = make(case, folder)
        if kept:
            keep(made, answers[0][0], kept, case)
        if count:
            count(made)
        suite.run_tool([tools / "hone", "compile", made, "-o", folder / "model.hone"])
        for inputs, exact, expected in answers:
            np.savez(folder / "in.npz", **inputs)
            suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz",
                            "--outputs", folder / "out.npz"])
            compare(dict(np.load(folder / "out.npz")), exact, expected, raised_layers.expected(case[0])["experts"] > 0)


def one_of_each(models):
    """The files of one export of every architecture: of optimum's, which are most like those that people publish, where there is one."""
    folders = {}
    for path in models.values():
        architecture, _, exporter = path.parent.name.partition(".")
        folders.setdefault(architecture, []).append((exporter != "optimum", exporter))
    chosen = {f"{architecture}.{min(exporters)[1]}" for architecture, exporters in folders.items()}
    return {name: path for name, path in models.items() if path.parent.name in chosen}


def choose(options):
    if options.architectures or options.docs:
        return one_of_each(suite.models())
    if options.all:
        return suite.models()
    return {name: path for name, path in suite.models(own=True).items() if path.parent.name in MODELS}


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--list", action="store_true", help="print a line for every case")
    parser.add_argument("--all", action="store_true", help="with every model, those of the shared folder too")
    parser.add_argument("--architectures", action="store_true", help="with one export of every architecture, those of the shared folder too")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder where files and inputs stay")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of all tools with one export of every architecture")
    options = parser.parse_args()
    models, tools = choose(options), options.build / "bin"
    cases = [(f"{model}/{tool}", (path, tool)) for model, path in models.items()
             for tool in ort_tools.TOOLS if options.only in f"{model}/{tool}"]
    skipped, layers = {}, {}

    def outcome(case):
        try:
            check(case, tools, options.docs and (lambda made: layers.update({case: raised_layers.found(made, tools)})), options.keep)
        except Skip as skip:
            skipped[case] = str(skip)

    reasons = {}
    for (name, case), (_, reason) in zip(cases, suite.run_cases(cases, outcome, options.jobs)):
        reasons[case] = reason
        if reason or options.list:
            print(f"{name}: {reason or skipped.get(case) or 'equal'}", flush=True)
    if options.docs:
        options.docs.write_text(ort_tools_table.write(models, reasons, skipped, layers))
    failed = sum(reason is not None for reason in reasons.values())
    return suite.finish(len(cases) - failed - len(skipped), failed, len(skipped))


sys.exit(main())
