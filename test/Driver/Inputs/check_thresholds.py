# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds thresholds of KV heads: check_thresholds.py FILE.safetensors LEAST FEW.txt MOST.txt.

Each row begins with the share of blocks that the command line gave, and ends with a share and a cosine. What `hone calibrate` said of a run with such a
share, MOST, has no fewer blocks than one without, FEW.
"""

import re
import sys

import numpy as np

from check_budgets import read


def blocks(path):
    """The share of the blocks of all heads."""
    return float(re.search(r"tokens: ([0-9.]+)% of the blocks", open(path).read())[1])


thresholds, least, few, most = read(sys.argv[1]), np.float32(sys.argv[2]), *map(blocks, sys.argv[3:])
rows = np.concatenate([layer.reshape(-1, 3) for name, layer in thresholds.items() if not name.startswith("__padding__")])
assert (rows[:, 0] == least).all() and (rows[:, 1] >= 0).all() and (rows[:, 1] <= 1).all() and (np.abs(rows[:, 2]) <= 1).all(), rows
assert few < most and most >= 90 * float(least), (few, most)
