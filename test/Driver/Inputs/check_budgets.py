# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds budgets of layers against the importance of their keys: check_budgets.py KEYS.safetensors ARTEFACT BUDGET SINKS RECENT.

The sum of the budgets is that of one budget for all, and each layer keeps the share of its attention that a search through all shares
finds: the largest p so that the shortest prefixes of the ranked keys that have it fit into the sum (PrefixKV, Wang et al. 2024).
"""

import json
import pathlib
import struct
import sys

import numpy as np


def read(path):
    """The tensors of f32 of a safetensors file, by name."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    return {name: np.frombuffer(data, np.float32, (end - begin) // 4, 8 + size + begin)
            for name, (begin, end) in ((name, tensor["data_offsets"]) for name, tensor in header.items())}


def prefixes(shares, p, least):
    """How many keys of each layer have the share p of its attention, and `least` at least."""
    return np.maximum(np.argmax(shares >= p, axis=1) + 1, least)


def main():
    masses, manifest = read(sys.argv[1]), json.loads((pathlib.Path(sys.argv[2]) / "manifest.json").read_text())
    budget, sinks, recent = map(int, sys.argv[3:])
    for name, mass in masses.items():
        assert (mass >= 0).all() and (np.diff(mass) <= 0).all() and abs(mass.sum() - 1) < 1e-5, name
    (state,) = manifest["states"]
    retention = state["retention"]
    budgets = np.array([layer["budget"] for layer in retention["layers"]])
    names = [state["slots"][layer["keys"]]["name"] for layer in retention["layers"]]
    assert sorted(names) == sorted(masses), (names, list(masses))
    shares = np.array([np.cumsum(masses[name], dtype=np.float64) / masses[name].sum(dtype=np.float64) for name in names])
    least = sinks + recent + retention["block"]
    assert budgets.sum() == budget * len(budgets) and budgets.min() >= least, budgets
    assert len(set(budgets)) > 1, "layers of this model concentrate their attention differently"
    best = max(p for p in np.unique(shares) if prefixes(shares, p, least).sum() <= budgets.sum())
    kept = np.array([share[count - 1] for share, count in zip(shares, budgets)])
    assert (kept >= best - 1e-6).all(), (best, kept, budgets)


if __name__ == "__main__":
    main()
