# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How important SpargeAttention (Zhang et al. 2025) finds each block of keys, in NumPy."""

import numpy as np

BLOCK, QUERIES = 64, 128  # keys and queries of a block


def pool(vectors, size, begin=0):
    """The means of the vectors from `begin` on of each block of `vectors`, `[heads, positions, elements]`, and the squares of the norms of the means of
    their directions."""
    (heads, count, elements), blocks = vectors.shape, -(-vectors.shape[1] // size)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    is_there = (np.arange(count) >= begin)[:, None]
    parts = np.where(is_there, np.stack([vectors, vectors / np.where(norms > 0, norms, 1)]), 0)
    parts = np.pad(parts, ((0, 0), (0, 0), (0, blocks * size - count), (0, 0))).reshape(2, heads, blocks, size, elements).sum(axis=3)
    counts = np.add.reduceat(is_there[:, 0].astype(float), np.arange(0, count, size))
    means, directions = parts / np.maximum(counts, 1)[:, None]
    return means, (directions**2).sum(axis=-1)


def importance(query, keys, first, similarity, key_begin=0, size=BLOCK, queries=QUERIES):
    """What the queries of each block attend to each block of keys by their means, `[KV heads, query blocks, key blocks]`, sums over the query heads of a
    KV head; which blocks are listed whatever that is; which have a key that a list sees, `[query blocks, key blocks]`; and how far similarities lie from
    `similarity`, `[KV heads, query blocks]`. `query` is
    `[heads, tokens, size]`, scaled, the first of them at position `first`; `keys` is `[KV heads, keys, size]`, of which those before `key_begin` are padding."""
    (heads, count, _), (key_heads, held, _) = query.shape, keys.shape
    keys = keys.astype(np.float64)
    key_means, key_similarities = pool(keys - keys[:, key_begin:].mean(axis=1, keepdims=True), size, key_begin)
    means, similarities = pool(query.astype(np.float64), queries)
    similarities = similarities.reshape(key_heads, heads // key_heads, -1).min(axis=1)
    lists, blocks = np.arange(means.shape[1]), np.arange(key_means.shape[1])
    last = first + np.minimum((lists + 1) * queries, count) - 1
    is_visible = (blocks * size <= last[:, None]) & ((blocks + 1) * size > key_begin)
    limits = np.broadcast_to(similarity, key_heads)[:, None]  # of each KV head
    is_similar = key_similarities >= limits
    scores = means @ np.repeat(key_means, heads // key_heads, axis=0).swapaxes(1, 2)
    scores = np.where(is_visible & np.repeat(is_similar, heads // key_heads, axis=0)[:, None], scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e30))
    weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    is_listed = ~is_similar[:, None] | (similarities < limits)[:, :, None]
    distance = np.minimum(np.abs(similarities - limits), np.abs(key_similarities[:, key_begin // size:] - limits).min(axis=-1)[:, None])
    return weights.reshape(key_heads, -1, len(lists), len(blocks)).sum(axis=1), is_listed, is_visible, distance
