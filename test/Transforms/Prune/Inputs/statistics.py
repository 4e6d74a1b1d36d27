# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""statistics.py FILE WEIGHT=INPUT:CHANNELS... [--KEY=VALUE...]: writes a file of statistics for weights of a small test.

The fingerprint of the model is what the message on standard input expects one to be. The Hessian of an input is that of
random rows, in which each channel depends on the one before it. --KEY=VALUE replaces an entry of the metadata, --drop=TENSOR leaves
a tensor out, --cost=WEIGHT:VALUE says what errors of a weight cost, --set=TENSOR:VALUE puts the value into the tensor's first element, and --without-input=N makes channel N zero.
"""

import json
import re
import struct
import sys

import numpy as np


def draw_hessian(channels, seed):
    rows = np.random.default_rng(seed).normal(size=(8 * channels, channels))
    for channel in range(1, channels):
        rows[:, channel] = rows[:, channel] * (1 + channel % 3) + 0.7 * rows[:, channel - 1]
    return (rows.T @ rows / len(rows)).astype(np.float32)


def main():
    path, *words = sys.argv[1:]
    options = [word[2:].split("=", 1) for word in words if word.startswith("--")]
    weights = [word.rsplit("=", 1) for word in words if not word.startswith("--")]
    found = re.search(r"with the fingerprint (\w+)", sys.stdin.read())
    metadata = {"format": "hone-statistics", "version": "1", "tokens": "64", "model": found[1] if found else "none"}
    tensors = {}
    for weight, text in weights:
        number, channels = text.split(":")
        metadata["input of " + weight] = number
        hessian = draw_hessian(int(channels), int(number))
        for key, value in options:
            if key == "without-input":
                hessian[int(value), :] = hessian[:, int(value)] = 0
        tensors[number + ".second_moment"] = hessian
        tensors[number + ".absmax"] = np.ones(int(channels), np.float32)
        tensors[number + ".rows"] = np.array(64, np.int64)
    for key, value in options:
        if key == "drop":
            del tensors[value]
        elif key == "cost":
            weight, cost = value.split(":")
            tensors["cost of " + weight] = np.array(cost, np.float32)
        elif key == "set":
            tensors[value.split(":")[0]].reshape(-1)[0] = value.split(":")[1]
        elif key != "without-input":
            metadata[key] = value
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        dtype = {"float32": "F32", "int64": "I64"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main()
