# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hone on an encoder, by the C interface of its runtime; decoders are measured by `hone-run bench`."""

import ctypes

import numpy as np

HONE_I64, MOST_AXES = 8, 8


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("sizes", ctypes.c_int64 * MOST_AXES), ("strides", ctypes.c_int64 * MOST_AXES)]


class NamedTensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("tensor", Tensor)]


class Engine:
    encodes = True

    def load(self, path, threads, options):
        self.library = ctypes.CDLL(options["library"])
        for name in ("hone_last_error", "hone_version"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.version = self.library.hone_version().decode()
        self.threads = threads
        self.module = ctypes.c_void_p()
        self.check(self.library.hone_module_open(path.encode(), ctypes.byref(self.module)))

    def check(self, status):
        if status:
            raise RuntimeError(self.library.hone_last_error().decode())

    def encode(self, rows):
        ids = np.array(rows, np.int64)
        arrays = {b"input_ids": ids, b"attention_mask": np.ones_like(ids)}
        inputs = (NamedTensor * len(arrays))()
        for slot, (name, array) in zip(inputs, arrays.items()):
            slot.name = name
            slot.tensor.data, slot.tensor.dtype, slot.tensor.rank = array.ctypes.data, HONE_I64, array.ndim
            slot.tensor.sizes[:2], slot.tensor.strides[:2] = array.shape, (array.shape[1], 1)
        outputs = ctypes.c_void_p()
        self.check(self.library.hone_module_call(self.module, b"main", inputs, ctypes.c_size_t(len(arrays)), self.threads,
                                                 ctypes.byref(outputs)))
        self.library.hone_outputs_free(outputs)
