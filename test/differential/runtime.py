# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sessions of libhone_rt from Python, through its C interface."""

import ctypes

import numpy as np

import suite

MAX_RANK = 8
INPUT, OUTPUT, STATE = range(3)
DTYPES = {np.dtype(name): number for number, name in
          {1: "float32", 2: "float16", 4: "float64", 7: "int32", 8: "int64", 13: "bool"}.items()}
Sizes = ctypes.c_int64 * MAX_RANK


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("sizes", Sizes),
                ("strides", Sizes)]


class NamedTensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("tensor", Tensor)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("sizes", Sizes), ("symbols", ctypes.c_char_p * MAX_RANK)]


def view(array):
    """A tensor over the array's memory, which must outlive it."""
    strides = [stride // array.itemsize for stride in array.strides]
    return Tensor(array.ctypes.data, DTYPES[array.dtype], array.ndim, Sizes(*array.shape), Sizes(*strides))


def named(arrays):
    return (NamedTensor * len(arrays))(*(NamedTensor(name.encode(), view(array)) for name, array in arrays.items()))


def copy_of(tensor):
    """An array of a dense tensor's elements."""
    dtype = next(dtype for dtype, number in DTYPES.items() if number == tensor.dtype)
    shape = tuple(tensor.sizes[:tensor.rank])
    count = int(np.prod(shape))
    return np.frombuffer(ctypes.string_at(tensor.data, count * dtype.itemsize), dtype).reshape(shape)


class Module:
    """A loaded artefact. What the library refuses is a Failure with its message."""

    def __init__(self, library, artefact):
        self.library = ctypes.CDLL(str(library))
        self.library.hone_last_error.restype = ctypes.c_char_p
        self.module = ctypes.c_void_p()
        self.call("module_open", str(artefact).encode(), ctypes.byref(self.module))

    def call(self, name, *arguments):
        if getattr(self.library, f"hone_{name}")(*arguments):
            raise suite.Failure(self.library.hone_last_error().decode())

    def names(self, entry, role):
        """Names of the inputs or slots of an entry; none where there is no such entry."""
        count, info = ctypes.c_size_t(), TensorInfo(ctypes.sizeof(TensorInfo))
        if self.library.hone_module_tensor_count(self.module, entry.encode(), role, ctypes.byref(count)):
            return []
        names = []
        for index in range(count.value):
            self.call("module_tensor_info", self.module, entry.encode(), role, ctypes.c_size_t(index), ctypes.byref(info))
            names.append(info.name.decode())
        return names

    def close(self):
        self.library.hone_module_close(self.module)


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("entry", ctypes.c_char_p), ("threads", ctypes.c_int32), ("reserve", ctypes.c_int64)]


class Session:
    def __init__(self, module, entry="forward"):
        self.module, self.session = module, ctypes.c_void_p()
        options = SessionOptions(ctypes.sizeof(SessionOptions), entry.encode())
        module.call("session_open", module.module, ctypes.byref(options), ctypes.byref(self.session))

    def set_context(self, arrays):
        self.module.call("session_set_context", self.session, named(arrays), ctypes.c_size_t(len(arrays)))

    def forward(self, arrays, output):
        """Calls @forward; a copy of the named output."""
        return self.call("forward", arrays, output)

    def call(self, entry, arrays, output):
        outputs, tensor = ctypes.c_void_p(), Tensor()
        self.module.call("session_call", self.session, entry.encode(), named(arrays), ctypes.c_size_t(len(arrays)),
                         ctypes.byref(outputs))
        try:
            self.module.call("outputs_get", outputs, output.encode(), ctypes.byref(tensor))
            return copy_of(tensor)
        finally:
            self.module.library.hone_outputs_free(outputs)

    def truncate(self, length):
        self.module.call("session_truncate", self.session, ctypes.c_int64(length))

    def keep(self, numbers):
        self.module.call("session_keep", self.session, (ctypes.c_int64 * len(numbers))(*numbers), ctypes.c_size_t(len(numbers)))

    def keep_each(self, numbers):
        """Of each sequence of the batch the positions of these numbers."""
        flat, counts = [number for own in numbers for number in own], [len(own) for own in numbers]
        self.module.call("session_keep_each", self.session, (ctypes.c_int64 * len(flat))(*flat), (ctypes.c_size_t * len(counts))(*counts),
                         ctypes.c_size_t(len(counts)))

    def truncate_each(self, lengths):
        self.module.call("session_truncate_each", self.session, (ctypes.c_int64 * len(lengths))(*lengths), ctypes.c_size_t(len(lengths)))

    def checkpoint(self):
        checkpoint = ctypes.c_void_p()
        self.module.call("session_checkpoint", self.session, ctypes.byref(checkpoint))
        return checkpoint

    def restore(self, checkpoint):
        self.module.call("session_restore", self.session, checkpoint)

    def fork(self):
        other = object.__new__(Session)
        other.module, other.session = self.module, ctypes.c_void_p()
        self.module.call("session_fork", self.session, ctypes.byref(other.session))
        return other

    @staticmethod
    def join(sessions):
        other = object.__new__(Session)
        other.module, other.session = sessions[0].module, ctypes.c_void_p()
        other.module.call("session_join", (ctypes.c_void_p * len(sessions))(*(session.session for session in sessions)),
                          ctypes.c_size_t(len(sessions)), ctypes.byref(other.session))
        return other

    def close(self):
        self.module.library.hone_session_close(self.session)
