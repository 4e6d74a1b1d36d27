#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each pattern of attention reads of a language model's keys, and what that costs: the tables of docs/sparse-attention.md.

Compiles the model with each pattern and measures its perplexity in windows, how much of a needle it repeats by the depth at which it lies,
and how much of chains of needles (test/differential/needles.py). How many keys a query reads and which share of its attention it drops follows
from the queries and keys of the model in onnxruntime, by the definition of the pattern, for 512 queries of a window; a pattern that drops more
than it promises ends the script with an error. The model is that of the shared folder, or one like it with --model: docs/sparse-attention.md
says how --write-training and --write-rope make one for longer texts.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "differential"))
import antidiagonals  # noqa: E402
import means  # noqa: E402
import needles  # noqa: E402
import runtime  # noqa: E402

BLOCK = 64
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
HOPS = 3  # pieces of a chain
QUERIES = 512  # of a window, whose keys are counted
FEW = 64  # tokens of a call that selects for each of them


def read_thresholds(path):
    """Of a file of `hone calibrate --attention-error`: the path, sinks, window and keys of a block, and rows of thresholds for the KV heads of each layer."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    said = header.pop("__metadata__")
    rows = [np.frombuffer(data, np.float32, 3 * tensor["shape"][0], 8 + size + tensor["data_offsets"][0]).reshape(-1, 3)
            for name, tensor in header.items() if not name.startswith("__padding__")]
    return path, int(said["sinks"]), int(said["window"]), int(said["block"]), rows


def patterns_of(window, blocks, sizes, all_sinks, near, thresholds):
    """By name: sinks, window, blocks or the share of the attention, how they are selected, keys of a block, and the similarity of sparge; or the factor
    of skip-softmax; or what read_thresholds gives; or None. With smaller blocks as many more are selected. `near` keys are the window of patterns that select."""
    yield "dense", None
    for path in thresholds:
        yield f"sparge, thresholds of {path.name}", read_thresholds(path)
    for sinks in all_sinks:
        for eighths in (1, 2, 3, 4):
            yield f"sinks-window, {sinks} and {window * eighths // 8} keys", (sinks, window * eighths // 8, 0, "", BLOCK, None)
    for name in ("top-blocks", "quest"):
        for sinks in all_sinks:
            for size, count in itertools.product(sizes, blocks):
                count = int(count * BLOCK // size)
                yield f"{name}, {count} of {size} beside {sinks} and {near} keys", (sinks, near, count, name, size, None)
    for sinks in all_sinks:
        for size, count in itertools.product(sizes, blocks):
            count = int(count * BLOCK // size)
            yield f"quest after dense prompts, {count} of {size} beside {sinks} and {near} keys", (sinks, near, count, "after", size, None)
    for share in (0.5, 0.8, 0.9, 0.95):
        yield f"xattention, {share:g} with {all_sinks[-1]} and {near} keys", (all_sinks[-1], near, share, "xattention", BLOCK, None)
    for size, share, similarity in itertools.product(sizes, (0.5, 0.8, 0.9), (-1.0, 0.1, 0.2, 0.25, 0.3)):
        yield (f"sparge, {share:g} in blocks of {size} with {similarity:g} and {all_sinks[-1]} and {near} keys",
               (all_sinks[-1], near, share, "sparge", size, similarity))
    for factor in (0.01, 0.1, 1.0, 4.0, 16.0, 64.0):
        yield f"skip-softmax, {factor:g}", factor


def flags_of(pattern):
    if pattern is None:
        return []
    if isinstance(pattern, float):
        return ["--attention=skip-softmax", f"--attention-skip={pattern}"]
    if isinstance(pattern[0], pathlib.Path):
        path, sinks, window, size, _ = pattern
        return ["--attention=sparge", f"--attention-sinks={sinks}", f"--attention-window={window}", f"--attention-block-size={size}",
                f"--attention-thresholds={path}"]
    sinks, window, blocks, name, size, similarity = pattern
    names = {"": ["--attention=sinks-window"], "after": ["--attention=sparge", "--attention-share=1", "--attention-decode=quest"]}
    flags = [*names.get(name, [f"--attention={name}"]), f"--attention-sinks={sinks}", f"--attention-window={window}", f"--attention-block-size={size}"]
    option = "share" if name in ("xattention", "sparge") else "blocks"
    flags += [f"--attention-similarity={similarity}"] if name == "sparge" else []
    return flags + ([f"--attention-{option}={blocks}"] if blocks else [])


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip() or f"{command[0]} ended with {result.returncode}")
    return result.stdout


def open_model(model):
    """A session of onnxruntime on an ONNX model with the queries, keys and logits of each attention as outputs, and their names by attention.
    Logits are those of an Add of the mask to a product, before a Softmax."""
    import onnx
    import onnxruntime
    graph = onnx.load(model)
    by_output = {name: node for node in graph.graph.node for name in node.output}
    wanted = []
    for node in graph.graph.node:
        if node.op_type == "Softmax" and (masked := by_output.get(node.input[0])) is not None and masked.op_type == "Add":
            product = next(by_output[name] for name in masked.input if by_output[name].op_type == "MatMul")
            wanted.append((product.input[0], product.input[1], node.input[0]))
    graph.graph.output.extend(onnx.ValueInfoProto(name=name) for names in wanted for name in names)
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"]), wanted


def group_of(session, wanted):
    """How many query heads share a KV head, by the shapes of keys of the past and of queries."""
    past = next(value for value in session.get_inputs() if value.name not in ("input_ids", "attention_mask", "position_ids"))
    query = session.run([wanted[0][0]], feeds_of(session, np.zeros(1, np.int64)))[0]
    return query.shape[1] // past.shape[1]


def attention_inputs(session, wanted, windows):
    """Queries, keys and logits of each attention for each of some windows: `[heads, tokens, size]` twice, those of the query heads, and
    `[heads, tokens, tokens]`. One attention at a time: logits of long windows are gigabytes."""
    for window in windows:
        feeds = feeds_of(session, window)
        for names in wanted:
            query, key, logits = session.run(list(names), feeds)
            yield query[0], key[0].swapaxes(-1, -2), logits[0]


def write_rope(model, base, output):
    """The model with rotations of another base: their frequencies are a constant, from 1 down."""
    import onnx
    graph = onnx.load(model)
    constants = list(graph.graph.initializer) + [node.attribute[0].t for node in graph.graph.node if node.op_type == "Constant"]
    changed = 0
    for constant in constants:
        values = onnx.numpy_helper.to_array(constant)
        flat, places = values.ravel(), np.arange(values.size)
        if values.dtype == np.float32 and values.size > 1 and 0 < flat[1] < 1 and np.allclose(flat, flat[1] ** places, rtol=1e-4):
            frequencies = base ** (-places / values.size)
            constant.CopyFrom(onnx.numpy_helper.from_array(frequencies.astype(np.float32).reshape(values.shape), constant.name))
            changed += 1
    if changed != 1:
        sys.exit(f"{model}: expected one constant with the frequencies of rotations, but got {changed}")
    onnx.save(graph, output)


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


def skip(logits, rows, factor):
    """The keys that skip-softmax keeps in steps of 64: `[heads, rows, tokens]` of causal logits."""
    kept, largest = np.zeros(logits.shape, bool), np.full(logits.shape[:2], -np.inf)
    margin = np.log(np.maximum((rows + 1) / factor, 8))
    for first in range(0, logits.shape[2], BLOCK):
        most = logits[:, :, first:first + BLOCK].max(axis=-1)
        is_kept = most > largest - margin
        largest = np.where(is_kept, np.maximum(most, largest), largest)
        kept[:, :, first:first + BLOCK] = is_kept[:, :, None]
    return kept


def scores_of(query, of_blocks, name):
    """Logits of the mean key of each block, or with `quest` the largest that a key within the bounds of the block's can have."""
    if name == "top-blocks":
        return query @ of_blocks.mean(axis=2).swapaxes(-1, -2)
    bounds = of_blocks.max(axis=2), of_blocks.min(axis=2)
    return np.maximum(query, 0) @ bounds[0].swapaxes(-1, -2) + np.minimum(query, 0) @ bounds[1].swapaxes(-1, -2)


def top(weights, may, blocks):
    """The `blocks` largest of the weights of each row that may be selected."""
    order = np.argsort(-np.where(may, weights, -1), axis=-1, kind="stable")[..., :blocks]
    selected = np.zeros(weights.shape, bool)
    np.put_along_axis(selected, order, True, axis=-1)
    return selected & may


def share_of(weights, forced, may, share):
    """The fewest of the largest weights of each row that together with the forced ones make the share of all of them."""
    missing = share * weights.sum(axis=-1, keepdims=True) - np.where(forced, weights, 0).sum(axis=-1, keepdims=True)
    order = np.argsort(-np.where(may, weights, -1), axis=-1, kind="stable")
    ordered = np.take_along_axis(np.where(may, weights, 0), order, axis=-1)
    selected = np.zeros(weights.shape, bool)
    np.put_along_axis(selected, order, ordered.cumsum(axis=-1) - ordered < missing, axis=-1)
    return selected & may


def choose(query, key, rows, pattern, group, layer):
    """The keys of sinks, window and selected blocks: `[heads, rows, tokens]`. `group` query heads select together. `layer` is the number of the attention."""
    if isinstance(pattern[0], pathlib.Path):
        _, sinks, window, keys, of_layers = pattern
        pattern = sinks, window, of_layers[layer][:, 1, None, None], "sparge", keys, of_layers[layer][:, 2]
    sinks, window, blocks, name, keys, similarity = pattern
    heads, count, size = query.shape
    places, sink_end = np.arange(-(-count // keys)), -(-sinks // keys)
    per_list = {"xattention": keys, "sparge": keys * means.QUERIES // means.BLOCK}.get(name, 1)  # tokens of a prompt that select together
    first = rows // per_list * per_list
    window_begin = (np.maximum(first - window + 1, 0) // keys)[:, None]
    forced = (places < sink_end) | (places >= window_begin)
    if name == "after":
        forced = forced | (rows < count - FEW)[:, None]
    if name == "":
        selected = np.broadcast_to(forced, (heads, *forced.shape))
    elif name == "xattention":
        weights = antidiagonals.importance(query, key[::group], 0)[:, rows // per_list]
        selected = np.repeat(forced | share_of(weights, forced, ~forced, blocks), group, axis=0)
    elif name == "sparge":
        weights, is_listed, *_ = means.importance(query, key[::group], 0, similarity, size=keys, queries=per_list)
        forced = forced | is_listed[:, rows // per_list]
        selected = np.repeat(forced | share_of(weights[:, rows // per_list], forced, ~forced, blocks), group, axis=0)
    else:
        whole = count // keys
        scores = scores_of(query[:, rows], key[:, :whole * keys].reshape(heads, whole, keys, size), name)
        may = (places[:whole] >= sink_end) & (places[:whole] < window_begin) & ~forced[:, :whole]
        scores = np.where(may, scores, -np.inf)
        weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e30))
        weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
        chosen = top(weights.reshape(heads // group, group, len(rows), whole).sum(axis=1), may, blocks)
        selected = np.broadcast_to(forced, (heads, *forced.shape)).copy()
        selected[:, :, :whole] |= np.repeat(chosen, group, axis=0)
    return np.repeat(selected, keys, axis=-1)[:, :, :count]


def reading(session, wanted, windows, patterns):
    """By pattern: the mean share of keys that queries read, that of the last queries, and the mean and the largest share of attention that
    queries drop."""
    group, sums = group_of(session, wanted), {name: [] for name, _ in patterns}
    for number, (query, key, logits) in enumerate(attention_inputs(session, wanted, windows)):
        count = logits.shape[1]
        rows = np.unique(np.linspace(0, count - 1, QUERIES).astype(int))
        causal = np.arange(count) <= rows[:, None]
        logits = np.where(causal, logits[:, rows], -np.inf)
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        for name, pattern in patterns:
            if pattern is None:
                kept = np.broadcast_to(causal, logits.shape)
            else:
                kept = causal & (skip(logits, rows, pattern) if isinstance(pattern, float) else choose(query, key, rows, pattern, group, number % len(wanted)))
            dropped = np.where(kept, 0, probabilities).sum(axis=-1)
            shares = (kept.sum(axis=-1) / (rows + 1)).mean(axis=0)
            sums[name].append((shares.mean(), shares[rows >= count - BLOCK].mean(), dropped.mean(), float(dropped.max())))
    return {name: (*np.mean(found, axis=0)[:3], max(most for *_, most in found)) for name, found in sums.items()}


def recalls(module, tasks, apart):
    """How much of each task's answer a model gives, the tokens before it given as a prompt, but for the last `apart` of all, which are fed after it."""
    names = module.names("forward", runtime.INPUT)
    for task in tasks:
        ids, session, logits = task.tokens[None].astype(np.int64), runtime.Session(module), []
        end = ids.shape[1] - apart
        for begin, stop in [(0, end)] + [(end, ids.shape[1])] * bool(apart):
            arrays = {"input_ids": np.ascontiguousarray(ids[:, begin:stop]), "attention_mask": np.ones((1, stop), np.int64),
                      "position_ids": np.arange(begin, stop, dtype=np.int64)[None]}
            logits.append(session.forward({name: arrays[name] for name in names}, "logits")[0])
        session.close()
        yield needles.recall(task, np.concatenate(logits))


def measure(build, model, pattern, tokens, tasks, window, artefact):
    """Perplexity, and the mean recall of each list of tasks. `artefact` is no path of one before: one path is one program, while that is loaded."""
    run(build / "bin" / "hone", "compile", model, *flags_of(pattern), "-o", artefact, "--quiet")
    apart = FEW if isinstance(pattern, tuple) and "after" in pattern else 0  # fed by calls that select for each token
    chunk = ["--chunk", apart] if apart else []
    perplexity = json.loads(run(build / "bin" / "hone", "eval", artefact, "--tokens", tokens, "--window", window, *chunk, "--json"))["perplexity"]
    module = runtime.Module(build / "lib" / "libhone_rt.so", artefact)
    found = [float(np.mean(list(recalls(module, some, apart)))) for some in tasks]
    module.close()
    return perplexity, found


def numbers(text):
    return [int(word) for word in text.split(",")]


def shares(text):
    return [float(word) for word in text.split(",")]


def parse():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    options.add_argument("--output", type=pathlib.Path, default=pathlib.Path("sparse-attention"), help="where files go")
    options.add_argument("--model", type=pathlib.Path, help="an ONNX model of the same vocabulary")
    options.add_argument("--window", type=int, default=512, help="tokens of a window, no more than the model was trained on")
    options.add_argument("--blocks", type=shares, default=[1, 2, 3], help="how many blocks of 64 keys are selected, or as many keys in smaller blocks")
    options.add_argument("--block-sizes", type=numbers, default=[BLOCK], help="keys of a block")
    options.add_argument("--sinks", type=numbers, default=[0, 64], help="first keys that all queries see")
    options.add_argument("--near", type=int, default=128, metavar="KEYS", help="the window of patterns that select blocks or shares")
    options.add_argument("--thresholds", type=pathlib.Path, nargs="+", default=[], metavar="FILE",
                         help="files of hone calibrate --attention-error without --attention-top-k, a pattern each")
    options.add_argument("--only", nargs="+", default=[""], help="patterns whose names contain one of these, beside dense")
    options.add_argument("--tokens", type=int, default=16384, help="how many tokens to measure perplexity on")
    options.add_argument("--needles", type=int, default=40, help="needles for each depth, and chains")
    options.add_argument("--windows", type=int, default=4, help="windows whose attention is looked at")
    options.add_argument("--write-training", metavar="NEEDLES:WINDOWS:SKIP",
                         help="only write OUTPUT/training.npy: windows of the training text from token SKIP on, a quarter of them as they are, "
                              "with 1 to NEEDLES needles in each of the others")
    options.add_argument("--write-rope", metavar="BASE", type=float, help="only write OUTPUT/model.onnx: --model with rotations (RoPE) of this base")
    return options.parse_args()


def main():
    options = parse()
    folder = pathlib.Path(os.environ.get("HONE_SHARED") or ROOT.parent / "shared") / "models" / "lm"
    if not folder.is_dir():
        sys.exit(f"expected a language model in {folder}, but there is none")
    options.output.mkdir(parents=True, exist_ok=True)
    vocabulary = json.loads((folder / "target" / "hf" / "config.json").read_text())["vocab_size"]
    if options.write_training:
        most, count, begin = map(int, options.write_training.split(":"))
        text = np.load(folder / "train.tokens.npy")[begin:]
        np.save(options.output / "training.npy", needles.training_text(text, options.window, count, most, vocabulary).astype(np.int32))
        return
    model = options.model or folder / "target" / "optimum" / "model.onnx"
    if options.write_rope:
        write_rope(model, options.write_rope, options.output / "model.onnx")
        return
    text = np.load(folder / "eval_tokens.npy")
    tokens = options.output / "tokens.npy"
    np.save(tokens, text[:options.tokens + 1])
    tasks = needles.make(text[options.tokens + 1:], options.window, DEPTHS, options.needles, vocabulary)
    tasks = [[task for task in tasks if task.depth == depth] for depth in DEPTHS]
    tasks.append(needles.make_chains(text[options.tokens + 1:], options.window, HOPS, options.needles, vocabulary))
    patterns = [(name, pattern) for name, pattern in patterns_of(options.window, options.blocks, options.block_sizes, options.sinks, options.near, options.thresholds)
                if pattern is None or any(part in name for part in options.only)]
    windows = text[:options.windows * options.window].astype(np.int64).reshape(options.windows, options.window)
    reads = reading(*open_model(model), windows, patterns)
    print("| pattern | keys read: mean, by the last queries | attention dropped: mean, most | perplexity | recall at depth "
          + ", ".join(f"{depth:g}" for depth in DEPTHS) + "; of chains |")
    print("| --- | --- | --- | --- | --- |")
    for number, (name, pattern) in enumerate(patterns):
        density, last, dropped, most = reads[name]
        perplexity, found = measure(options.build.resolve(), model, pattern, tokens, tasks, options.window, options.output / f"{number}.hone")
        print(f"| {name} | {100 * density:.1f} %, {100 * last:.1f} % | {100 * dropped:.2f} %, {100 * most:.1f} % | {perplexity:.3f} | "
              + ", ".join(f"{100 * recall:.0f} %" for recall in found[:-1]) + f"; {100 * found[-1]:.0f} % |", flush=True)
        if isinstance(pattern, float) and most > pattern / (1 + pattern):
            sys.exit(f"{name} drops {most} of the attention of a query, more than {pattern / (1 + pattern)}")


main()
