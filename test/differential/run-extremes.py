# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator with inputs that nobody should give it: extreme values, and sizes that disagree, one input at a time.

A call ends with a result or with a sentence and exit code 1, in some seconds; no signal ends it, and no sanitizer has anything to
say. With a build of the preset asan, generated code is checked too. Changes that may take for ever are in extremes.known.

--docs writes the table of what is checked, operator by operator.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import extreme_models
import extreme_table
import suite

KNOWN = pathlib.Path(__file__).with_name("extremes.known")
COMPILE_SECONDS = 120
CALL_SECONDS, CALL_MEGABYTES = 10, 1024


class Tools:
    """The tools of one or two builds: `compiler` compiles, `runtime` calls."""

    def __init__(self, compiler, runtime):
        self.hone = compiler.resolve() / "bin" / "hone"
        self.caller = runtime.resolve() / "test" / "extremes" / "hone-call-cases"
        settings = (runtime / "CMakeCache.txt").read_text()
        self.flags = ["--sanitize=address"] if re.search(r"^HONE_SANITIZE:\w+=.*address", settings, re.M) else []

    def compile(self, model, folder):
        """Why the model is refused, or None; anything else than either is a Failure."""
        (folder / "model.onnx").write_bytes(model.proto.SerializeToString())
        command = [self.hone, "compile", folder / "model.onnx", "-o", folder / "model.hone", "--quiet", *self.flags]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMPILE_SECONDS)
        except subprocess.TimeoutExpired:
            raise suite.Failure(f"hone compile did not end in {COMPILE_SECONDS} s") from None
        if done.returncode == 0:
            return None
        if done.returncode != 1 or "error: " not in done.stderr:
            raise suite.Failure(f"hone compile ended with {done.returncode}: {suite.one_line(done.stderr)}")
        return suite.one_line(done.stderr)

    def call(self, folder):
        """(case, outcome, text) of every case in the folder."""
        command = [self.caller, folder / "model.hone", folder / "cases.npz", str(CALL_SECONDS), str(CALL_MEGABYTES)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise suite.Failure(f"hone-call-cases ended with {done.returncode}: {suite.one_line(done.stderr)}")
        return [tuple(line.split("\t", 2)) for line in done.stdout.splitlines()]


def write_cases(model, folder):
    """Writes the base and all changes of it; the input that each case changes."""
    base = {f"base/{t.name}": extreme_models.onnx_cases.to_carrier(t.values, t.element) for t in model.inputs}
    changes, changed = {}, {"base": ("base", "")}
    for number, (case, name, array) in enumerate(extreme_models.list_changes(model)):
        changes[f"{number}/{name}"] = array
        changed[str(number)] = (case, name)
    np.savez(folder / "cases.npz", **base, **changes)
    return changed


def run_model(model, tools, folder):
    """(case, input, outcome, text) of the compilation and of every call."""
    folder.mkdir()
    for known in range(extreme_models.SIZES + 1):
        loose = extreme_models.loosen(model, known)
        outcome, reason = "refused", tools.compile(loose, folder)
        if reason is not None:
            continue
        changed = write_cases(loose, folder)
        results = [(*changed[number], outcome, text) for number, outcome, text in tools.call(folder)]
        # Where less is known than ONNX's shape inference takes for granted, it says sizes that the base does not have.
        refused = [text for case, _, outcome, text in results if case == "base" and outcome == "refused"]
        if not refused:
            return [("compile", "", "ok", ""), *results]
        outcome, reason = "failed", refused[0]
    return [("compile" if outcome == "refused" else "base", "", outcome, reason)]


def find_known(known, case):
    return next((pattern for pattern in known if fnmatch.fnmatchcase(case, pattern)), None)


def run_all(models, tools, options):
    """Prints what fails; the counts, and what each model said."""
    known = suite.read_known(KNOWN)
    counts, results = {"passed": 0, "failed": 0, "skipped": 0}, []
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or pathlib.Path(scratch)

        def work(model):
            try:
                return model, run_model(model, tools, root / model.name)
            except suite.Failure as failure:
                return model, [("model", "", "failed", str(failure))]

        with ThreadPoolExecutor(options.jobs) as pool:
            for model, outcomes in pool.map(work, models):
                results.append((model, outcomes))
                for case, _, outcome, text in outcomes:
                    name = f"{model.name}/{case}"
                    if outcome != "failed":
                        counts["passed"] += 1
                    elif find_known(known, name):
                        counts["skipped"] += 1
                    else:
                        counts["failed"] += 1
                        print(f"FAIL {name}: {text}", flush=True)
    return counts, results


def parse_arguments():
    parser = suite.parser(__doc__)
    parser.add_argument("--run-build", type=pathlib.Path, help="the build folder of what calls, if it is another")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of checks (Markdown) here")
    parser.add_argument("--keep", type=pathlib.Path, help="keep models, inputs and artefacts in this new folder")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.keep:
        options.keep.mkdir(parents=True)
    models = [model for model in extreme_models.collect() if options.only in f"{model.operator}/{model.name}"]
    tools = Tools(options.build, options.run_build or options.build)
    counts, results = run_all(models, tools, options)
    if options.docs:
        options.docs.write_text(extreme_table.make_table(results))
    return suite.finish(**counts)


if __name__ == "__main__":
    sys.exit(main())
