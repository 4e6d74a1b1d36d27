# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `hone tune` makes of matrices, in f64."""

import numpy as np


def orthogonalize(matrix):
    """The iteration of Muon (Jordan et al. 2024), on singular values."""
    left, values, right = np.linalg.svd(matrix / (np.linalg.norm(matrix) + 1e-7), full_matrices=False)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values ** 3 + 2.0315 * values ** 5
    return left * values @ right


def keep_largest(value):
    """Two of each four rows, by magnitude."""
    groups = value.reshape(-1, 4, value.shape[1])
    order = np.argsort(-np.abs(groups), axis=1, kind="stable")
    kept = np.zeros(groups.shape, bool)
    np.put_along_axis(kept, order[:, :2], True, axis=1)
    return np.where(kept, groups, 0).reshape(value.shape)


def shrink(value):
    """Less the third magnitude of each four rows."""
    groups = value.reshape(-1, 4, value.shape[1])
    third = np.sort(np.abs(groups), axis=1)[:, 1:2]
    return (np.sign(groups) * np.maximum(np.abs(groups) - third, 0)).reshape(value.shape)
