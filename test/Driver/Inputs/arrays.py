# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes inputs for the good model of bad_models.py, and wrong ones, into a folder: arrays.py FOLDER."""

import os
import sys

import numpy as np

os.chdir(sys.argv[1])
x = np.ones((2, 4), np.float32)
np.savez("good.npz", x=x)
np.savez("name.npz", z=x)
np.savez("extra.npz", x=x, z=x)
np.savez("none.npz")
np.savez("type.npz", x=x.astype(np.int64))
np.savez("shape.npz", x=x[:, :3])
np.savez("rank.npz", x=x[0])
np.savez("object.npz", x=np.array([1, None]))
np.savez("expected-shape.npz", y=x[:1])
with open("good.npz", "rb") as file:
    data = file.read()
with open("cut.npz", "wb") as file:
    file.write(data[:-5])
