# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a safetensors file as numpy sees them."""

import json

import numpy as np

DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}


def read(path):
    """(metadata, {name: array}) of a file; tensors that fill gaps are left out."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        if not name.startswith("__padding__."):
            first, end = (begin + offset for offset in entry["data_offsets"])
            arrays[name] = np.frombuffer(data[first:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return metadata, arrays
