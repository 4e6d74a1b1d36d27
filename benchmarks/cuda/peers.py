#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peers.py BENCHMARKS [FILTER]: device kernels of Hone beside PyTorch's (cuBLAS, flash attention) in one run.

BENCHMARKS is the program hone-cuda-benchmarks. Without PyTorch, or without one that sees a GPU, only Hone's are measured. One
line a case: microseconds of both, and what Hone reaches in bytes and operations a second.
"""

import json
import re
import subprocess
import sys


def measure(torch, call):
    """Microseconds of a call: the best of five runs of about 20 ms."""
    best, calls = float("inf"), 5
    for attempt in range(6):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for i in range(calls):
            call(i)
        end.record()
        end.synchronize()
        time = 1000 * begin.elapsed_time(end) / calls
        if attempt:
            best = min(best, time)
        calls = min(max(int(20000 / time), 5), 500)
    return best


def tensors(torch, *shapes):
    return [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]


def linear(torch, rows, outputs, inputs):
    copies = min(max(int(512e6 / (2 * outputs * inputs)), 1), 16)
    weights = tensors(torch, *[(outputs, inputs)] * copies)
    (x,) = tensors(torch, (rows, inputs))
    return measure(torch, lambda i: torch.nn.functional.linear(x, weights[i % copies]))


def attention(torch, queries, keys):
    query, key, value = tensors(torch, (1, 32, queries, 128), (1, 8, keys, 128), (1, 8, keys, 128))
    options = {"is_causal": queries == keys, "enable_gqa": True}
    return measure(torch, lambda i: torch.nn.functional.scaled_dot_product_attention(query, key, value, **options))


def norm(torch, rows, count):
    x, weight = tensors(torch, (rows, count), (count,))
    return measure(torch, lambda i: torch.nn.functional.rms_norm(x, (count,), weight))


PEERS = {"linear": linear, "attention": attention, "rms_norm": norm}


def peer_of(torch, case):
    """The time of PyTorch's kernel in bf16 at the shape of a case, or None where the case is a peer itself; weights of few bits, and
    pruned ones, stand beside dense bf16."""
    match = re.fullmatch(r"(\w+)\.(.+)\.([\dx]+)", case)
    return PEERS[match[1]](torch, *map(int, match[3].split("x"))) if match else None


def find_torch():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def main():
    torch = find_torch()
    if not torch:
        print("no PyTorch that sees a GPU: only Hone is measured", file=sys.stderr)
    ours = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    print(f"{'case':34} {'Hone µs':>10} {'PyTorch µs':>11} {'GB/s':>8} {'TFLOP/s':>8}")
    for line in ours.stdout.splitlines():
        row = json.loads(line)
        time = peer_of(torch, row["case"]) if torch else None
        peer = f"{time:.1f}" if time else "-"
        print(f"{row['case']:34} {row['microseconds']:10.1f} {peer:>11} {row['GB_per_s']:8.0f} {row['TFLOP_per_s']:8.1f}")
    return ours.returncode


if __name__ == "__main__":
    sys.exit(main())
