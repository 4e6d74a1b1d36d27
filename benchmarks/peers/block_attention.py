#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of a prompt over lists of blocks of 64 keys with one thread, beside PyTorch's compiled flex_attention with a block mask of the
same density: each block of queries reads its own block and others before it.

Both take turns: hone-kernel-ratios measures the kernel, and here is processor time of flex_attention. Selection is counted in neither.
"""

import argparse
import math
import pathlib
import random
import re
import statistics
import subprocess
import time

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

HEADS, KV_HEADS, SIZE, BLOCK = 14, 2, 64, 64  # as benchmarks/ratios_selection.cpp has them


def make_mask(tokens, share):
    """The diagonal blocks are causal within; the others are seen whole."""
    blocks, chance = tokens // BLOCK, random.Random(2)
    counts, lists = torch.zeros(1, 1, blocks, dtype=torch.int32), torch.zeros(1, 1, blocks, blocks, dtype=torch.int32)
    own = torch.arange(blocks, dtype=torch.int32)
    for row in range(blocks):
        others = sorted(chance.sample(range(row), math.ceil((row + 1) * share) - 1))
        counts[0, 0, row] = len(others)
        lists[0, 0, row, :len(others)] = torch.tensor(others, dtype=torch.int32)
    diagonal = torch.zeros_like(lists)
    diagonal[0, 0, :, 0] = own
    return BlockMask.from_kv_blocks(torch.ones_like(counts), diagonal, counts, lists, BLOCK_SIZE=(BLOCK, BLOCK),
                                    mask_mod=lambda sequence, head, query, key: query >= key)


def time_peer(call, repeats):
    """Milliseconds, the median."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def time_kernel(tool):
    """Milliseconds by tokens and percent of the blocks."""
    text = subprocess.run([tool, "--filter=attention/lists", "--repeats=3"], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"/prefill +(\d+) keys, +([\d.]+) % of them read: +([\d.]+) ms", text)
    return [(int(tokens), float(percent), float(ms)) for tokens, percent, ms in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build", help="the build folder")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    attend, calls = torch.compile(flex_attention), []
    for tokens in (4096, 16384):
        query, key, value = (torch.randn(1, heads, tokens, SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS))
        for share in (0.05, 0.25):
            mask = make_mask(tokens, share)
            calls.append(lambda q=query, k=key, v=value, mask=mask: attend(q, k, v, block_mask=mask, enable_gqa=True))
            calls[-1]()  # compiles it
    turns = [(time_kernel(options.build / "benchmarks/hone-kernel-ratios"), [time_peer(call, 3) for call in calls])
             for _ in range(options.turns)]
    print(f"{'tokens':>6} {'blocks':>8} {'Hone, ms':>9} {'PyTorch ' + torch.__version__ + ', ms':>24} {'ratio':>6}")
    for i, (tokens, percent, _) in enumerate(turns[0][0]):
        ours, peer = [rows[i][2] for rows, _ in turns], [times[i] for _, times in turns]
        print(f"{tokens:6} {percent:6.1f} % {statistics.median(ours):9.1f} {statistics.median(peer):24.1f} "
              f"{statistics.median(b / a for a, b in zip(ours, peer)):6.2f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
