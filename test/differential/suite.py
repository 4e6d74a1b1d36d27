# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What differential suites share: options, running the tools, cases in parallel, and the last line."""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 1500  # the perplexity of 65,536 tokens on one busy core


class Failure(Exception):
    """A case that went wrong, with its reason in a line."""


def parser(description):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--only", default="", help="cases whose name contains this")
    return options


def has_tiles():
    """Whether kernels multiply by tiles of AMX here. Rows have bits of their own then up to 64 of them in a pass alone, not where weights are
    bf16, and not in trees over caches of fewer bits than f32 (docs/cpu-kernels.md)."""
    return "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def shared_models():
    """The folder of the larger models, or None where there is none."""
    path = pathlib.Path(os.environ.get("HONE_SHARED") or ROOT.parent / "shared") / "models"
    return path if path.is_dir() else None


def models(own=False):
    """Models, which have stored outputs, by FOLDER/FILE: those of every checkout, and unless `own` those of the shared
    folder's zoo. One without would be tested by nobody: it ends the suite."""
    folders = [ROOT / "test" / "models"]
    if not own and (shared := shared_models()):
        folders.append(shared / "zoo")
    paths = [path for folder in folders for path in sorted(folder.glob("*/*.onnx"))]
    if lacking := [path for path in paths if not path.with_suffix(".npz").exists()]:
        raise SystemExit(f"{lacking[0]}: expected its stored outputs beside it, {lacking[0].stem}.npz")
    return {f"{path.parent.name}/{path.stem}": path for path in paths}


def one_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"


def run_tool(command, threads=1, variables=None, stream="stdout"):
    """Runs a tool of the build, with more variables of the environment; what it wrote to `stream`. Anything but exit 0 is a Failure
    with its first message."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), **(variables or {})}
    command = [str(word) for word in command]
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment,
                                timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command[:2])} did not end in {TIMEOUT_SECONDS} s") from None
    if result.returncode not in (0, 1):
        raise Failure(f"{' '.join(command[:2])} crashed (exit {result.returncode}): {one_line(result.stderr)}")
    if result.returncode:
        raise Failure(one_line(result.stderr or result.stdout))
    return getattr(result, stream)


def expect_failure(action, message):
    """`action` ends with a Failure that says `message`."""
    try:
        action()
    except Failure as failure:
        if message not in str(failure):
            raise
    else:
        raise Failure(f"there is no error, but expected: {message}")


def use_emulated_driver(build):
    """Tools that are started from now on find the emulated driver of CUDA (test/emulation), whose folder is the result."""
    folder = (build / "test" / "emulation" / "lib").resolve()
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return folder


def run_script(python, script, *arguments):
    """Runs a script beside the suites by another interpreter, without which the suite has nothing to run: where it fails, so does the suite."""
    result = subprocess.run([python, script, *arguments], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{script.name}: {one_line(result.stderr[-300:])}")


def run_cases(cases, check, jobs):
    """Calls check(case) for each (name, case), and yields (name, reason of the failure or None) in their order."""

    def outcome(case):
        try:
            check(case)
            return None
        except Failure as failure:
            return str(failure)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        pending = [(name, pool.submit(outcome, case)) for name, case in cases]
        for name, job in pending:
            yield name, job.result()


def run_all(cases, check, jobs):
    """Runs cases, and prints those that fail; the exit code."""
    passed = failed = 0
    for name, reason in run_cases(cases, check, jobs):
        passed, failed = passed + (reason is None), failed + (reason is not None)
        if reason:
            print(f"{name}: {reason}", flush=True)
    return finish(passed, failed)


def rows_held(tokens, rows, window):
    """How many rows of a cache of the window's size are specified after so many tokens; see the section "Windowed KV
    Cache" of com.microsoft.GroupQueryAttention."""
    step = rows - window + 1
    return tokens if tokens <= rows else tokens + step * ((rows - tokens) // step)


def windowed_caches(path):
    """Outputs that are caches of the window's size, with the window."""
    caches = {}
    for node in onnx.load(path, load_external_data=False).graph.node:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "GroupQueryAttention" and attributes.get("sliding_window_cache"):
            caches |= dict.fromkeys(node.output[1:3], attributes["local_window_size"])
    return caches


def clear_rows_not_held(arrays, caches):
    """What onnxruntime leaves in windowed caches beyond the rows held, as its memory was, becomes 0."""
    for name, array in arrays.items():
        case, kind, output = name.split("/", 2)
        if kind == "out" and output in caches:
            tokens = arrays[f"{case}/in/attention_mask"].shape[1]
            array[:, :, rows_held(tokens, array.shape[2], caches[output]):] = 0


def cases_of(path, folder):
    """The file of a model's stored cases, or a copy in `folder` without what is not specified."""
    stored, caches = path.with_suffix(".npz"), windowed_caches(path)
    if not caches:
        return stored
    arrays = dict(np.load(stored))
    clear_rows_not_held(arrays, caches)
    np.savez(folder / "cases.npz", **arrays)
    return folder / "cases.npz"


def stored_cases(path):
    """Inputs and outputs of a model's cases that onnxruntime ran, by name."""
    cases = {}
    for key, array in np.load(path.with_suffix(".npz")).items():
        case, direction, name = key.split("/", 2)
        cases.setdefault(case, {"in": {}, "out": {}})[direction][name] = array
    return {name: case for name, case in cases.items() if case["out"]}


def read_known(path):
    """Cases that are known to fail, with the reason of each: lines `case: reason`."""
    known = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(":")
            known[name.strip()] = reason.strip()
    return known


def run_with_known(cases, check, jobs, known_file):
    """Runs cases of which some are known to fail, which count as skipped; one of those that passes is a failure."""
    known = read_known(known_file)
    passed = failed = skipped = 0
    for name, reason in run_cases(cases, check, jobs):
        if name in known and reason:
            skipped += 1
        elif name in known:
            failed += 1
            print(f"{name}: passes; remove it from {known_file.name}", flush=True)
        elif reason:
            failed += 1
            print(f"{name}: {reason}", flush=True)
        else:
            passed += 1
    return finish(passed, failed, skipped)


def finish(passed, failed, skipped=0):
    """Prints the summary that `./dev test` adds up, and gives the exit code."""
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed + skipped else 0


def run_chosen(options, cases):
    """The cases (name, case) that `options` choose, where case(folder of the tools) raises Failure: prints a line a case, and returns the exit
    code."""
    passed = failed = 0
    chosen = [(name, case) for name, case in cases if options.only in name]
    for name, reason in run_cases(chosen, lambda case: case(options.build / "bin"), options.jobs):
        print(f"{name}: {reason or 'as expected'}", flush=True)
        passed, failed = passed + (reason is None), failed + (reason is not None)
    return finish(passed, failed)


def run_main(description, cases):
    """A whole suite of cases without options of its own."""
    return run_chosen(parser(description).parse_args(), cases)
