# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the sweeps of GPTQ and SparseGPT against what they stand for: once the columns up to j have their numbers, the others are those
of the least squares fit, W'_r = W_r + (W_f - Q_f) H_fr H_rr⁻¹ (H with a hundredth of its mean diagonal on it), which numpy solves
anew for every column.

least_squares.py make SEED                             prints a module with a weight
least_squares.py check SEED gptq|sparsegpt STATISTICS  reads the module that hone-opt printed
"""

import json
import pathlib
import re
import sys

import numpy as np

ROWS, COLUMNS = 8, 24


def draw(seed):
    return np.random.default_rng(int(seed)).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def read_hessian(path):
    """H [K, K] of the one input in a file of statistics, and a hundredth of the mean of its diagonal on that."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    begin, end = next(entry["data_offsets"] for name, entry in header.items() if name.endswith("second_moment"))
    hessian = np.frombuffer(data[8 + length + begin:8 + length + end], np.float32).reshape(COLUMNS, COLUMNS).astype(float)
    return hessian + 0.01 * np.diag(hessian).mean() * np.eye(COLUMNS)


def make(seed):
    weight = draw(seed)
    kind = f"tensor<{ROWS}x{COLUMNS}xf32>"
    print(f'hone.param @weight : {kind} = dense<"0x{weight.tobytes().hex().upper()}"> : {kind}')
    print(f"""func.func @main(%x: tensor<?x{COLUMNS}xf32>) -> tensor<?x{ROWS}xf32> {{
  %weight = hone.get_param @weight : {kind}
  %0 = hone.linear %x, %weight : (tensor<?x{COLUMNS}xf32>, {kind}) -> tensor<?x{ROWS}xf32>
  %1 = math.absf %0 : tensor<?x{ROWS}xf32>
  return %1 : tensor<?x{ROWS}xf32>
}}""")


def fit_rest(weight, hessian, fixed):
    """`weight` with its first columns `fixed`, and the others the least squares fit."""
    f, r = slice(0, fixed.shape[1]), slice(fixed.shape[1], None)
    rest = weight[:, r] + np.linalg.lstsq(hessian[r, r], hessian[r, f] @ (weight[:, f] - fixed).T, rcond=None)[0].T
    return np.concatenate([fixed, rest], axis=1)


def sweep_gptq(weight, hessian):
    """Codes of 8 bits with one scale a row, which reaches its largest element."""
    largest = weight[np.arange(ROWS), np.abs(weight).argmax(axis=1)]
    scales = (largest / np.float32(-128)).astype(np.float16).astype(np.float64)
    codes, current = [], weight.astype(np.float64)
    for j in range(COLUMNS):
        codes.append(np.clip(np.rint(current[:, j] / scales) + 128, 0, 255))
        fixed = np.stack([(code - 128) * scales for code in codes], axis=1)
        current = fit_rest(weight.astype(np.float64), hessian, fixed)
    return np.stack(codes, axis=1)


def sweep_sparsegpt(weight, hessian):
    """Of every four the two with the largest w² / [(H_jj…)⁻¹]_00, as they are when the sweep reaches their group."""
    current, fixed = weight.astype(np.float64), np.zeros((ROWS, 0))
    spread = [np.linalg.inv(hessian[j:, j:])[0, 0] for j in range(COLUMNS)]
    for j in range(COLUMNS):
        if j % 4 == 0:
            scores = current[:, j:j + 4] ** 2 / np.array(spread[j:j + 4])
            kept = np.zeros((ROWS, 4), bool)
            np.put_along_axis(kept, np.argsort(-scores, axis=1, kind="stable")[:, :2], True, axis=1)
        fixed = np.concatenate([fixed, np.where(kept[:, j % 4], current[:, j], 0)[:, None]], axis=1)
        # A kept element stays as the fit has it by then; dropped ones are compensated by what is after them.
        current = np.concatenate([fixed[:, :j], fit_rest(current[:, j:], hessian[j:, j:], fixed[:, j:])], axis=1)
    return fixed


def check(seed, method, statistics):
    weight, hessian, text = draw(seed), read_hessian(statistics), sys.stdin.read()
    if method == "gptq":
        name = re.search(r"values = dense_resource<(\S+)>", text)[1]
        found = np.frombuffer(bytes.fromhex(read(text, name)), np.uint8).reshape(ROWS, COLUMNS)
        expected = sweep_gptq(weight, hessian)
        assert np.array_equal(found, expected), np.argwhere(found != expected)
        assert not np.array_equal(found, sweep_gptq(weight, np.eye(COLUMNS)))  # rounding to nearest
        return
    found = np.frombuffer(bytes.fromhex(read(text, "weight")), np.float32).reshape(ROWS, COLUMNS)
    expected = sweep_sparsegpt(weight, hessian)
    assert ((found != 0).reshape(ROWS, -1, 4).sum(axis=2) == 2).all()
    assert np.array_equal(found != 0, expected != 0)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6), np.abs(found - expected).max()
    assert np.abs(found - weight)[found != 0].max() > 1e-2  # something was compensated


def read(text, name):
    """The bytes of a resource, after its alignment."""
    return re.search(rf'{re.escape(name)}: "0x[0-9A-F]{{8}}([0-9A-F]*)"', text)[1]


{"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
