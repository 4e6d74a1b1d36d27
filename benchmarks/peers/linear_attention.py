#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of one layer of linear attention with one thread, beside the operator LinearAttention of the installed onnxruntime.

Both take turns: hone-kernel-ratios measures the kernel, and here is processor time of a session that has the operator alone.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import time

import numpy as np
import onnx
import onnxruntime

HEADS, SIZE = 16, 128  # as benchmarks/ratios_linear_attention.cpp has them
RULES = {"linear": ("linear", 0), "gated": ("gated", 1), "gated-by-element": ("gated", SIZE), "delta": ("delta", 0),
         "gated-delta": ("gated_delta", 1), "gated-delta-by-element": ("gated_delta", SIZE)}


def operands(rule, decays, tokens):
    """What the operator reads by name, in its order; empty for an input that it does not have."""
    rng = np.random.default_rng(1)
    rows = {name: rng.standard_normal((1, tokens, HEADS * SIZE), np.float32) for name in ("query", "key", "value")}
    rows["key"] /= np.sqrt(np.float32(SIZE))
    rows["state"] = rng.standard_normal((1, HEADS, SIZE, SIZE), np.float32)
    rows["decay"] = np.full((1, tokens, HEADS * decays), -0.05, np.float32) if decays else None
    rows["beta"] = np.full((1, tokens, HEADS), 0.5, np.float32) if rule.endswith("delta") else None
    return rows


def open_session(rule, rows):
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, f32, array.shape) for name, array in rows.items() if array is not None]
    outputs = [helper.make_tensor_value_info("output", f32, rows["query"].shape),
               helper.make_tensor_value_info("next", f32, rows["state"].shape)]
    node = helper.make_node("LinearAttention", [name if array is not None else "" for name, array in rows.items()], ["output", "next"],
                            domain="com.microsoft", q_num_heads=HEADS, kv_num_heads=HEADS, update_rule=rule)
    model = helper.make_model(helper.make_graph([node], "layer", inputs, outputs), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def time_peer(session, feed, repeats):
    """Milliseconds, the median after a first call."""
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        session.run(None, feed)
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times[1:])


def time_kernel(tool, name, tokens):
    text = subprocess.run([tool, f"--filter=linear_attention/{name}/", "--repeats=5"], check=True, capture_output=True, text=True).stdout
    return float(re.search(rf" {tokens} tokens +([\d.]+) ms", text)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build", help="the build folder")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    tokens = 512
    print(f"{'rule':24} {'Hone, ms':>9} {'onnxruntime ' + onnxruntime.__version__ + ', ms':>23} {'ratio':>6}")
    for name, (rule, decays) in RULES.items():
        rows = operands(rule, decays, tokens)
        session, feed = open_session(rule, rows), {key: array for key, array in rows.items() if array is not None}
        turns = [(time_kernel(options.build / "benchmarks/hone-kernel-ratios", name, tokens), time_peer(session, feed, 7))
                 for _ in range(options.turns)]
        ours, peer = (statistics.median(times) for times in zip(*turns))
        print(f"{name:24} {ours:9.2f} {peer:23.2f} {statistics.median(b / a for a, b in turns):6.2f}", flush=True)


if __name__ == "__main__":
    main()
