# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training in PyTorch, as `hone tune` takes them: AdamW, gradients clipped to a norm, one batch of windows a step.

Prints the seconds of each step as JSON. Run by training.py in the environment of the peers.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import torch
import transformers


def load(folder):
    """The model of a folder of transformers, with random weights where there is a config.json alone."""
    if any(pathlib.Path(folder).glob("*.safetensors")):
        return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    config = transformers.AutoConfig.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("tokens")
    for name in ("context", "batch", "steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--clip-norm", type=float, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = load(options.folder)
    model.train()
    model.config.use_cache = False
    forward = torch.compile(model) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    ids = torch.from_numpy(np.load(options.tokens).astype(np.int64)) % model.config.vocab_size
    seconds = []
    for step in range(options.steps):
        first = step * options.batch * options.context
        windows = ids[first:first + options.batch * options.context + 1].unfold(0, options.context + 1, options.context)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            logits = forward(input_ids=windows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        if options.clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        print(f"step {step + 1}: loss {loss.item():.4f}, {seconds[-1]:.3f} s", file=sys.stderr, flush=True)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
