# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Greedy texts of models with an encoder: through the C interface, and their comparison."""

import ctypes

import numpy as np

import runtime
import suite

CLOSE = 1e-3  # between the logits of two tokens that either may come of


def likeliest(logits):
    """The token of a row of logits, and how much less likely the second one is."""
    largest = np.sort(logits)[-2:]
    return int(np.argmax(logits)), largest[1] - largest[0]


def compare(got, expected):
    """Tokens with those of likeliest()."""
    if len(got) != len(expected):
        raise suite.Failure(f"expected {len(expected)} tokens, but got {len(got)}")
    for place, (token, (wanted, lead)) in enumerate(zip(got, expected)):
        if token != wanted and lead > CLOSE:
            raise suite.Failure(f"token {place} is {token}, but expected {wanted}, which is likelier by {lead:.3g}")
        if token != wanted:
            return


class GenerationOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("max_new_tokens", ctypes.c_int64), ("prefill_chunk", ctypes.c_int64),
                ("rest", ctypes.c_int64 * 16)]


def write_by_c(library, artefact, encoder_inputs, prompt, new_tokens, prefill_chunk=512):
    """The text that hone_session_encode, where there are inputs for it, and hone_session_generate give."""
    module = runtime.Module(library, artefact)
    session = runtime.Session(module)
    tokens = []
    receive = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t)(
        lambda user, token, text, size: tokens.append(token) or 0)
    options = GenerationOptions()
    module.library.hone_generation_options_init(ctypes.byref(options))
    options.max_new_tokens, options.prefill_chunk = new_tokens, prefill_chunk
    try:
        if encoder_inputs:
            module.call("session_encode", session.session, runtime.named(encoder_inputs), ctypes.c_size_t(len(encoder_inputs)))
        module.call("session_generate", session.session, (ctypes.c_int64 * len(prompt))(*prompt), ctypes.c_size_t(len(prompt)),
                    ctypes.byref(options), receive, None)
        return tokens
    finally:
        session.close()
        module.close()
