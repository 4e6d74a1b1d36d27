# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare_statistics.py A B LEAST MOST: the Hessians of the inputs in two files differ, in the mean over inputs of the root of the mean
square relative to A's, by LEAST to MOST; their metadata are the same."""

import json
import struct
import sys

import numpy as np


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    return metadata, {name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).astype(np.float64)
                      for name, entry in header.items() if name.endswith(".second_moment")}


(first, a), (second, b) = map(read, sys.argv[1:3])
assert first == second and list(a) == list(b), (first, second)
difference = np.mean([np.sqrt(((a[name] - b[name]) ** 2).mean() / (a[name] ** 2).mean()) for name in a])
assert float(sys.argv[3]) <= difference <= float(sys.argv[4]), difference
