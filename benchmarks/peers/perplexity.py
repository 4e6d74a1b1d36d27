# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What llama.cpp's forms of a model predict, measured as `hone eval --window` does.

  perplexity.py FORM MODEL.gguf TOKENS.npy WINDOW OUT.gguf

Quantizes the float32 file to FORM (a name of llama.cpp's file types, Q4_0 say; F32 takes it as it is), and prints as JSON the bytes of
its tensors, their elements, and the perplexity of each window of tokens on its own.
"""

import ctypes
import json
import math
import os
import sys

import gguf
import llama_cpp
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "engines"))
from llama import Engine  # noqa: E402


def quantize(form, source, out):
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{form}")
    if llama_cpp.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(settings)):
        sys.exit(f"llama.cpp cannot quantize {source} to {form}")


def window_loss(engine, tokens):
    """The sum of the negative log likelihoods of `tokens[1:]`."""
    count = len(tokens) - 1
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(engine.context), True)
    batch = llama_cpp.llama_batch_init(count, 0, 1)
    batch.n_tokens = count
    for i in range(count):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(tokens[i]), i, 1, True
        batch.seq_id[i][0] = 0
    if llama_cpp.llama_decode(engine.context, batch):
        sys.exit("llama_decode failed")
    logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(engine.context), shape=(count, engine.vocabulary)).astype(np.float64)
    llama_cpp.llama_batch_free(batch)
    largest = logits.max(axis=1)
    sums = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return (sums - logits[np.arange(count), tokens[1:]]).sum()


def main():
    form, source, path, window, out = sys.argv[1:]
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    if form == "F32":
        out = source
    else:
        quantize(form, source, out)
    engine = Engine()
    engine.load(out, os.cpu_count(), {})
    tokens, window = np.load(path).astype(np.int64), int(window)
    windows = [tokens[i:i + window + 1] for i in range(0, len(tokens) - window, window)]
    loss = sum(window_loss(engine, part) for part in windows) / (window * len(windows))
    tensors = gguf.GGUFReader(out).tensors
    print(json.dumps({"bytes": int(sum(tensor.n_bytes for tensor in tensors)), "elements": int(sum(tensor.n_elements for tensor in tensors)),
                      "perplexity": math.exp(loss)}))


main()
