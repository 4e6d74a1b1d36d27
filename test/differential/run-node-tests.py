# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiles and runs ONNX's own node tests and compares them at their own tolerances. onnx_cases.py says which count.

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy

import onnx_cases
import onnx_table
import suite

KNOWN = pathlib.Path(__file__).with_name("node-tests.known")
SECONDS = 120  # a case that takes longer has failed


def parse_arguments():
    parser = argparse.ArgumentParser(description="run ONNX's node tests through hone compile and hone-run")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="the build folder")
    parser.add_argument("--filter", default="*", help="run the cases or operators that match this pattern, or several "
                                                       "patterns with commas between")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--json", type=pathlib.Path, help="write the result of every case here")
    parser.add_argument("--docs", type=pathlib.Path, help="write the table of operators (Markdown) here")
    parser.add_argument("--keep", type=pathlib.Path, help="keep models, tensors and artefacts in this folder")
    parser.add_argument("--list", action="store_true", help="print the names of the selected cases and stop")
    return parser.parse_args()


def run(*command):
    """Exit code and what was said on stderr of a command."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS)
        return done.returncode, done.stderr.strip()
    except subprocess.TimeoutExpired:
        return 124, f"took more than {SECONDS} s"


def compare(case, folder):
    with numpy.load(folder / "out.npz") as actual:
        manifest = json.loads((folder / "model.hone" / "manifest.json").read_text())
        entry = next(entry for entry in manifest["entries"] if entry["name"] == "main")
        words = {output["name"]: output["dtype"] for output in entry["outputs"]}
        for expected in case.outputs:
            if expected.name not in actual:
                return f"output '{expected.name}' is missing"
            word = onnx_cases.WORDS[expected.element]
            if words.get(expected.name) != word:
                return f"output '{expected.name}': expected type {word}, got {words.get(expected.name)}"
            reason = onnx_cases.differ(expected, actual[expected.name], case)
            if reason:
                return reason
    return None


def first_error(text):
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines() or ["no message"]
    return lines[0]


def run_case(case, binaries, folder):
    """The stage that failed and why; (None, "") if nothing did."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    numpy.savez(folder / "in.npz", **{t.name: onnx_cases.to_carrier(t.values, t.element) for t in case.inputs})
    code, text = run(binaries / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone")
    if code:
        return "compile" if code == 1 else "crash", first_error(text) if code == 1 else f"exit {code}: {first_error(text)}"
    code, text = run(binaries / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz", "--outputs",
                     folder / "out.npz", "--threads", "1")
    if code:
        return "run" if code == 1 else "crash", first_error(text) if code == 1 else f"exit {code}: {first_error(text)}"
    reason = compare(case, folder)
    return ("compare", reason) if reason else (None, "")


def is_unexpected(name, result, known):
    """A tool that crashes is a fault whatever it was asked to do."""
    return result["stage"] == "crash" or (result["stage"] and name not in known)


def judge(name, result, known):
    """Says at once what is not as expected, so that a run that is cut short has told what it found."""
    if is_unexpected(name, result, known):
        print(f"FAIL {name}: {result['stage']}: {result['reason']}", flush=True)
    if not result["stage"] and name in known:
        print(f"PASS {name}, which {KNOWN.name} lists as failing: remove it there", flush=True)


def run_all(cases, known, options):
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or pathlib.Path(scratch)

        def work(case):
            begin = time.monotonic()
            stage, reason = run_case(case, options.build / "bin", root / case.name)
            return case, {"operator": case.operator, "opset": case.opset, "stage": stage, "reason": reason,
                          "seconds": round(time.monotonic() - begin, 2)}

        with ThreadPoolExecutor(options.jobs) as pool:
            for count, (case, result) in enumerate(pool.map(work, cases), 1):
                results[case.name] = result
                judge(case.name, result, known)
                if sys.stderr.isatty() or count % 200 == 0:
                    end = "\r" if sys.stderr.isatty() else "\n"
                    print(f"{count} of {len(cases)}", end=end, file=sys.stderr, flush=True)
    return results


def main():
    options = parse_arguments()
    cases, _ = onnx_cases.collect()
    patterns = options.filter.split(",")
    cases = [case for case in cases if any(fnmatch.fnmatchcase(name, p) for p in patterns
                                           for name in (case.name, case.operator))]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    known = suite.read_known(KNOWN)
    results = run_all(cases, known, options)
    failed = [name for name, result in results.items() if result["stage"]]
    unexpected = [name for name in failed if is_unexpected(name, results[name], known)]
    passing = [name for name in known if name in results and name not in failed]
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.docs:
        options.docs.write_text(onnx_table.make_table(results, known))
    # What is known to fail counts as skipped, so that the sum of all suites shows what is new.
    skipped = len(failed) - len(unexpected)
    print(f"{len(results) - len(failed) - len(passing)} passed, {len(unexpected) + len(passing)} failed, {skipped} skipped")
    return 1 if unexpected or passing else 0


if __name__ == "__main__":
    sys.exit(main())
