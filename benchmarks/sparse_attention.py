#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each pattern of attention reads of a language model's keys, and what that costs: the table of docs/guide.md.

Compiles the model with each of PATTERNS and measures its perplexity in windows, and how much of a needle it repeats by the depth at
which it lies (test/differential/needles.py). How many keys a query reads and which share of its attention it drops follows from the
queries and keys of the model in onnxruntime, by the definition of the pattern; a pattern that drops more than it promises ends the
script with an error. The model is that of the shared folder.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "differential"))
import needles  # noqa: E402
import runtime  # noqa: E402

BLOCK = 64
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Sinks, window, blocks and how they are selected, or the factor of skip-softmax.
PATTERNS = [("dense", None)]
PATTERNS += [(f"sinks-window, {sinks} and {window} keys", (sinks, window, 0, "")) for sinks in (0, 64) for window in (64, 128, 192, 256)]
PATTERNS += [(f"{name}, {blocks} beside {sinks} and 128 keys", (sinks, 128, blocks, name)) for name in ("top-blocks", "quest")
             for sinks in (0, 64) for blocks in (1, 2, 3)]

PATTERNS += [(f"skip-softmax, {factor:g}", factor) for factor in (0.01, 0.1, 1.0, 4.0, 16.0, 64.0)]


def flags_of(pattern):
    if pattern is None:
        return []
    if isinstance(pattern, float):
        return ["--attention=skip-softmax", f"--attention-skip={pattern}"]
    sinks, window, blocks, name = pattern
    flags = [f"--attention={name or 'sinks-window'}", f"--attention-sinks={sinks}", f"--attention-window={window}"]
    return flags + ([f"--attention-blocks={blocks}"] if blocks else [])


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip() or f"{command[0]} ended with {result.returncode}")
    return result.stdout


def attention_inputs(model, windows):
    """Queries, keys and logits of each attention of an ONNX model for each of some windows: `[heads, tokens, size]` twice, those of the query
    heads, and `[heads, tokens, tokens]`. Logits are those of an Add of the mask to a product, before a Softmax."""
    import onnx
    import onnxruntime
    graph = onnx.load(model)
    by_output = {name: node for node in graph.graph.node for name in node.output}
    wanted = []
    for node in graph.graph.node:
        if node.op_type == "Softmax" and (masked := by_output.get(node.input[0])) is not None and masked.op_type == "Add":
            product = next(by_output[name] for name in masked.input if by_output[name].op_type == "MatMul")
            wanted.append((product.input[0], product.input[1], node.input[0]))
    names = [name for names in wanted for name in names]
    graph.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for window in windows:
        feeds = feeds_of(session, window)
        found = dict(zip(names, session.run(names, feeds)))
        for query, key, logits in wanted:
            yield found[query][0], found[key][0].swapaxes(-1, -2), found[logits][0]


def feeds_of(session, window):
    """What a decoder without a past takes."""
    feeds = {}
    for value in session.get_inputs():
        if value.name == "input_ids":
            feeds[value.name] = window[None]
        elif value.name == "attention_mask":
            feeds[value.name] = np.ones((1, len(window)), np.int64)
        elif value.name == "position_ids":
            feeds[value.name] = np.arange(len(window))[None]
        else:
            feeds[value.name] = np.zeros([1 if i == 0 else 0 if isinstance(size, str) else size for i, size in enumerate(value.shape)], np.float32)
    return feeds


def skip(logits, factor):
    """The keys that skip-softmax keeps in steps of 64: `[heads, tokens, tokens]` of causal logits."""
    heads, count, _ = logits.shape
    kept, largest = np.zeros(logits.shape, bool), np.full((heads, count), -np.inf)
    margin = np.log(np.maximum(np.arange(1, count + 1) / factor, 8))
    for first in range(0, count, BLOCK):
        most = logits[:, :, first:first + BLOCK].max(axis=-1)
        is_kept = most > largest - margin
        largest = np.where(is_kept, np.maximum(most, largest), largest)
        kept[:, :, first:first + BLOCK] = is_kept[:, :, None]
    return kept


def choose(query, key, pattern, group):
    """The keys of sinks, window and selected blocks: `[heads, tokens, tokens]`. `group` query heads select together."""
    sinks, window, blocks, name = pattern
    heads, count, size = query.shape
    own, numbers = np.arange(count), np.arange(count) // BLOCK
    sink_end, window_begin = -(-sinks // BLOCK), np.maximum(own - window + 1, 0) // BLOCK
    forced = (numbers < sink_end) | (numbers >= window_begin[:, None])
    kept = np.broadcast_to(forced, (heads, count, count)).copy()
    if not blocks:
        return kept
    of_blocks = key[:, :count // BLOCK * BLOCK].reshape(heads, -1, BLOCK, size)
    if name == "quest":
        scores = sum(np.maximum(query[:, :, None, d] * of_blocks.max(axis=2)[:, None, :, d], query[:, :, None, d] * of_blocks.min(axis=2)[:, None, :, d])
                     for d in range(size))
    else:
        scores = query @ of_blocks.mean(axis=2).swapaxes(-1, -2)
    places = np.arange(scores.shape[-1])
    may = (places >= sink_end) & (places < window_begin[:, None])
    scores = np.where(may, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = np.where(may, weights / weights.sum(axis=-1, keepdims=True), 0)
    weights = np.repeat(weights.reshape(heads // group, group, count, -1).sum(axis=1), group, axis=0)
    order = np.argsort(-np.where(may, weights, -1), axis=-1, kind="stable")[:, :, :blocks]
    is_selected = np.zeros(weights.shape, bool)
    np.put_along_axis(is_selected, order, True, axis=-1)
    is_selected &= may
    kept[:, :, :of_blocks.shape[1] * BLOCK] |= np.repeat(is_selected, BLOCK, axis=-1)
    return kept


def reading(model, windows, group):
    """By pattern: the mean share of keys that queries read, and the mean and the largest share of attention that they drop."""
    sums = {name: [0.0, 0.0, 0.0, 0] for name, _ in PATTERNS}
    for query, key, logits in attention_inputs(model, windows):
        count = logits.shape[1]
        causal = np.tril(np.ones((count, count), bool))
        logits = np.where(causal, logits, -np.inf)
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        for name, pattern in PATTERNS:
            kept = causal if pattern is None else skip(logits, pattern) if isinstance(pattern, float) else choose(query, key, pattern, group)
            kept = np.broadcast_to(kept & causal, logits.shape)
            dropped = np.where(kept, 0, probabilities).sum(axis=-1)
            total = sums[name]
            total[0] += (kept.sum(axis=-1) / np.arange(1, count + 1)).mean()
            total[1] += dropped.mean()
            total[2] = max(total[2], float(dropped.max()))
            total[3] += 1
    return {name: (density / count, dropped / count, most) for name, (density, dropped, most, count) in sums.items()}


def measure(build, model, pattern, tokens, tasks, window, artefact):
    """Perplexity, and recall by depth. `artefact` is no path of one before: one path is one program, while that is loaded."""
    run(build / "bin" / "hone", "compile", model, *flags_of(pattern), "-o", artefact, "--quiet")
    perplexity = json.loads(run(build / "bin" / "hone", "eval", artefact, "--tokens", tokens, "--window", window, "--json"))["perplexity"]
    module, by_depth = runtime.Module(build / "lib" / "libhone_rt.so", artefact), {}
    names = module.names("forward", runtime.INPUT)
    for task in tasks:
        session = runtime.Session(module)
        ids = task.tokens[None].astype(np.int64)
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None]}
        logits = session.forward({name: arrays[name] for name in names}, "logits")
        by_depth.setdefault(task.depth, []).append(needles.recall(task, logits[0]))
    return perplexity, [float(np.mean(by_depth[depth])) for depth in DEPTHS]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    options.add_argument("--output", type=pathlib.Path, default=pathlib.Path("sparse-attention"), help="where files go")
    options.add_argument("--window", type=int, default=512, help="tokens of a window, no more than the model was trained on")
    options.add_argument("--tokens", type=int, default=16384, help="how many tokens to measure perplexity on")
    options.add_argument("--needles", type=int, default=40, help="needles for each depth")
    options.add_argument("--windows", type=int, default=4, help="windows whose attention is looked at")
    options = options.parse_args()
    folder = pathlib.Path(os.environ.get("HONE_SHARED") or ROOT.parent / "shared") / "models" / "lm"
    if not folder.is_dir():
        sys.exit(f"expected a language model in {folder}, but there is none")
    options.output.mkdir(parents=True, exist_ok=True)
    model, text = folder / "target" / "optimum" / "model.onnx", np.load(folder / "eval_tokens.npy")
    configuration = json.loads((folder / "target" / "hf" / "config.json").read_text())
    group = configuration["num_attention_heads"] // configuration["num_key_value_heads"]
    tokens = options.output / "tokens.npy"
    np.save(tokens, text[:options.tokens + 1])
    tasks = needles.make(text[options.tokens + 1:], options.window, DEPTHS, options.needles, configuration["vocab_size"])
    windows = text[:options.windows * options.window].astype(np.int64).reshape(options.windows, options.window)
    shares = reading(model, windows, group)
    print("| pattern | keys read | attention dropped: mean, most | perplexity | recall at depth " + ", ".join(f"{depth:g}" for depth in DEPTHS) + " |")
    print("| --- | --- | --- | --- | --- |")
    for number, (name, pattern) in enumerate(PATTERNS):
        density, dropped, most = shares[name]
        perplexity, recalls = measure(options.build.resolve(), model, pattern, tokens, tasks, options.window, options.output / f"{number}.hone")
        print(f"| {name} | {100 * density:.1f} % | {100 * dropped:.2f} %, {100 * most:.1f} % | {perplexity:.3f} | "
              + ", ".join(f"{100 * recall:.0f} %" for recall in recalls) + " |", flush=True)
        if isinstance(pattern, float) and most > pattern / (1 + pattern):
            sys.exit(f"{name} drops {most} of the attention of a query, more than {pattern / (1 + pattern)}")


main()
