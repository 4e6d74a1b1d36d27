# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders through @forward: all tokens at once, in chunks and one by one give what onnxruntime gave for all at once.

The stored cases with an empty past are fed to sessions of libhone_rt. What an encoder gave is their context.
"""

import numpy as np

import runtime
import suite

TOLERANCE = 1e-4  # as in run-models.py
CHUNKS = {"at once": 1 << 20, "in chunks": 3, "one by one": 1}


def has_empty_past(case):
    return any("past" in name and array.size == 0 for name, array in case["in"].items())


def context_of(case, names):
    """The encoder's keys and values: a merged decoder's, which its branch without a past computes, are outputs."""
    arrays = {}
    for name in names:
        made = case["out"].get(name.replace("past_key_values", "present"))
        arrays[name] = case["in"][name] if made is None or made.size == 0 else made
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def feed(session, name, tokens, chunk):
    pieces = [np.ascontiguousarray(tokens[:, begin:begin + chunk]) for begin in range(0, tokens.shape[1], chunk)]
    return np.concatenate([session.forward({name: piece}, "logits") for piece in pieces], axis=1)


def compare(module, case, label, tolerance):
    tokens, *context = module.names("forward", runtime.INPUT)
    expected = case["out"]["logits"]
    for how, chunk in CHUNKS.items():
        session = runtime.Session(module)
        try:
            session.set_context(context_of(case, context))
            logits = feed(session, tokens, case["in"][tokens], chunk)
        finally:
            session.close()
        if logits.shape != expected.shape:
            raise suite.Failure(f"{label} {how}: expected logits of shape {expected.shape}, but got {logits.shape}")
        excess = np.abs(logits - expected) - tolerance * (1 + np.abs(expected))
        if not (excess <= 0).all():
            at = np.unravel_index(np.argmax(excess), excess.shape)
            raise suite.Failure(f"{label} {how}: got {logits[at]:.6g} at {at}, expected {expected[at]:.6g}")


def check(path, artefact, library, tolerance=TOLERANCE):
    """Compares all cases of a model that have an empty past; those of models without a past are not meant."""
    cases = {label: case for label, case in suite.stored_cases(path).items() if has_empty_past(case)}
    if not cases:
        return
    module = runtime.Module(library, artefact)
    try:
        if not module.names("forward", runtime.STATE):
            raise suite.Failure("it has no state")
        for label, case in cases.items():
            compare(module, case, label, tolerance)
    finally:
        module.close()
