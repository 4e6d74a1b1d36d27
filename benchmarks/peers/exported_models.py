#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of models with one thread, beside onnxruntime: FOLDER has NAME.onnx and NAME.npz with the inputs, in folders of any depth, as
test/differential/run-exporters.py --keep FOLDER writes them.

Both take turns. A ratio above 1 means that Hone is faster; those below are listed again with the kernels that take most of their time.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime

LONGEST_REASON = 100  # characters
PROFILE_LINES = 6


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def time_peer(session, feed, seconds):
    """Milliseconds of a call: the median of as many as there is time for."""
    session.run(None, feed)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def bench(tool, artefact, inputs, *options):
    return subprocess.run([tool, "bench", artefact, "--inputs", inputs, "--threads=1", *options], check=True, capture_output=True, text=True)


def measure(path, tools, options, folder):
    """Milliseconds of Hone and of onnxruntime, a pair for each turn, and the profile as text."""
    inputs, artefact = path.with_suffix(".npz"), folder / "model.hone"
    subprocess.run([tools / "hone", "compile", path, "-o", artefact], check=True, capture_output=True, text=True)
    session, feed, turns = open_session(path), dict(np.load(inputs)), []
    for _ in range(options.turns):
        ours = json.loads(bench(tools / "hone-run", artefact, inputs, f"--seconds={options.seconds}", "--json").stdout)
        turns.append((1e3 * ours["latency_seconds"], time_peer(session, feed, options.seconds)))
    profile = bench(tools / "hone-run", artefact, inputs, "--seconds=0.2", "--profile=-").stderr
    return turns, profile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--build", type=pathlib.Path, default="build", help="the build folder")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    options = parser.parse_args()
    ratios, slower = [], {}
    print(f"{'model':36} {'Hone, ms':>9} {'onnxruntime ' + onnxruntime.__version__ + ', ms':>23} {'ratio':>6}")
    for path in sorted(options.models.glob("**/*.onnx")):
        name = str(path.relative_to(options.models).with_suffix(""))
        with tempfile.TemporaryDirectory() as folder:
            try:
                turns, profile = measure(path, options.build.resolve() / "bin", options, pathlib.Path(folder))
            except Exception as error:  # what either refuses
                print(f"{name:36} {(getattr(error, 'stderr', '') or str(error)).strip()[:LONGEST_REASON]}")
                continue
        ours, peer = (statistics.median(times) for times in zip(*turns))
        ratio = statistics.median(b / a for a, b in turns)
        ratios.append(ratio)
        print(f"{name:36} {ours:9.4f} {peer:23.4f} {ratio:6.2f}", flush=True)
        if ratio < 1:
            slower[name] = profile
    if ratios:
        print(f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} at 1 or above, geometric mean {statistics.geometric_mean(ratios):.2f}")
    for name, profile in slower.items():
        print(f"\n{name}\n" + "\n".join(profile.splitlines()[:PROFILE_LINES]))


if __name__ == "__main__":
    main()
