# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make-corpus.py FOLDER: writes the valid files that fuzzing starts from, one folder a target. What fuzzing found since
lies beside them in corpus/ under names that libFuzzer gave."""

import io
import json
import pathlib
import struct
import sys

import numpy as np


def npy(array, fortran=False):
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(array) if fortran else array)
    return buffer.getvalue()


def npz(save, **arrays):
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def safetensors(tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def manifest():
    tensor = {"name": "x", "dtype": "f32", "shape": ["batch", 4]}
    state = {"name": "k", "dtype": "f16", "shape": ["batch", 2, 0, 8], "append_axis": 2}
    return json.dumps({
        "schema": "hone-artefact", "version": 1, "hone": "0.1.0", "target": "cpu",
        "cpu": {"name": "x86-64-v3", "features": ["avx2"]},
        "files": {"program.so": {"bytes": 10}},
        "entries": [{"name": "main", "inputs": [tensor], "outputs": [tensor]},
                    {"name": "forward", "inputs": [tensor], "outputs": [tensor], "state": [state]}],
        "kernels": ["linear_f32_dense_avx2"], "source": {"name": "m.onnx"}, "tokenizer": "tokenizer.json",
        "generation": {"eos": [0, 2], "bos": None},
    }).encode()


def seeds():
    f32 = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield "manifest/full", manifest()
    yield "npy/f32", npy(f32)
    yield "npy/f16-fortran", npy(f32.astype(np.float16), fortran=True)
    yield "npy/i64-scalar", npy(np.int64(7))
    yield "npy/empty", npy(np.zeros((0, 5), np.uint8))
    yield "npy/complex", npy(f32.astype(np.complex64))
    yield "npz/stored", npz(np.savez, x=f32, y=np.array([True, False]))
    yield "npz/deflated", npz(np.savez_compressed, x=np.zeros((4, 64), np.int32))
    yield "safetensors/two", safetensors(
        {"a": ("F32", [2, 2], bytes(16)), "b": ("BF16", [3], bytes(6))}, {"format": "pt"})
    yield "safetensors/none", safetensors({})


for name, content in seeds():
    path = pathlib.Path(sys.argv[1]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
