# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How important XAttention (Xu et al. 2025) finds each block of keys, in NumPy."""

import numpy as np

BLOCK, STRIDE = 64, 16  # keys and queries of a block, and of a tile whose antidiagonals are summed


def importance(query, keys, first, key_begin=0):
    """What the queries of each block attend to each block of keys: `[KV heads, query blocks, key blocks]`, sums over the query heads of a KV
    head and over probabilities of tiles. `query` is `[heads, tokens, size]`, scaled, the first of them at position `first`; `keys` is `[KV heads, keys, size]`,
    of which those before `key_begin` are padding."""
    (heads, count, size), (key_heads, held, _) = query.shape, keys.shape
    groups, key_groups = -(-count // STRIDE), -(-held // STRIDE)
    pad = lambda x, length: np.pad(x.astype(np.float64), ((0, 0), (0, length - x.shape[1]), (0, 0)))
    q = pad(query, groups * STRIDE).reshape(heads, groups, STRIDE, size)[:, :, ::-1].reshape(heads, groups, -1)
    keys = np.where(np.arange(held)[:, None] < key_begin, 0, keys)
    k = np.repeat(pad(keys, key_groups * STRIDE).reshape(key_heads, key_groups, -1), heads // key_heads, axis=0)
    scores = q @ k.swapaxes(1, 2) / STRIDE
    scores[:, :, :key_begin // STRIDE] = -np.inf
    scores[:, np.arange(key_groups) * STRIDE > first + np.arange(groups)[:, None] * STRIDE + STRIDE - 1] = -np.inf
    weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e30))
    weights = (weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)).reshape(key_heads, -1, groups, key_groups).sum(axis=1)
    per_block = BLOCK // STRIDE
    sums = np.add.reduceat(weights, np.arange(0, key_groups, per_block), axis=2)
    return np.add.reduceat(sums, np.arange(0, groups, per_block), axis=1)
