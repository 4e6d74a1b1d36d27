# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""open_elsewhere.py PREFIX FOLDER ARTEFACT: loads lib/libhone_rt.so by that name from the folder PREFIX, makes FOLDER the current one,
which has files of the same names, and opens ARTEFACT. Prints what the library says."""

import ctypes
import os
import sys

prefix, folder, artefact = sys.argv[1:]
os.chdir(prefix)
library = ctypes.CDLL("lib/libhone_rt.so")
library.hone_last_error.restype = ctypes.c_char_p
os.chdir(folder)
status = library.hone_module_open(artefact.encode(), ctypes.byref(ctypes.c_void_p()))
print("opened" if status == 0 else library.hone_last_error().decode())
