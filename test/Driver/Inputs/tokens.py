# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes files of tokens, all but one of them with a fault, into a folder: tokens.py FOLDER."""

import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
tokens = np.arange(64, dtype=np.int32)
(folder / "folder").mkdir()
np.save(folder / "good.npy", tokens)
np.save(folder / "rows.npy", tokens.reshape(2, 32))
np.save(folder / "floats.npy", tokens.astype(np.float32))
np.save(folder / "outside.npy", np.where(tokens == 40, 2048, tokens))
np.save(folder / "negative.npy", np.where(tokens == 3, -1, tokens))
