#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention (hone compile --attention) beside dense attention with a mask of the same meaning.

One layer of attention over a state, or without one, with grouped heads and padded sequences, in every type of KV cache: a prompt and tokens after it equal
dense attention whose bias hides the other keys; tokens that are fed together equal those that are fed one by one, bit for bit. Blocks that
are selected are those of the definition in NumPy; queries for which two blocks are nearly as important are left out. A factor of skip-softmax
that no key is small enough for changes no bit, and one for which many are changes results within its bound.
"""

import pathlib
import tempfile
import typing

import numpy as np

import antidiagonals
import means
import runtime
import suite

HEADS, KEY_HEADS, SIZE, BLOCK = 4, 2, 32, 64
MODULE = """
module {{
  hone.state @kv [#hone.slot<"key", tensor<?x{kv}x?x{size}xf32>, axis = 2>, #hone.slot<"value", tensor<?x{kv}x?x{size}xf32>, axis = 2>]
  func.func @forward(%q: tensor<?x{heads}x?x{size}xf32> {{onnx.name = "q", onnx.dims = ["batch", "", "fresh", ""]}},
      %k: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "k", onnx.dims = ["batch", "", "fresh", ""]}},
      %v: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "v", onnx.dims = ["batch", "", "fresh", ""]}},
      %pad: tensor<?xi64> {{onnx.name = "pad", onnx.dims = ["batch"]}}{argument}, %s: !hone.kv<@kv>)
      -> (tensor<?x{heads}x?x{size}xf32> {{onnx.name = "out"}}, !hone.kv<@kv>) {{
    %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x{kv}x?x{size}xf32> -> tensor<?x{kv}x?x{size}xf32>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x{kv}x?x{size}xf32> -> tensor<?x{kv}x?x{size}xf32>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale({scale}) {bias} {begin}
       : ({types}) -> tensor<?x{heads}x?x{size}xf32>
    return %2, %1 : tensor<?x{heads}x?x{size}xf32>, !hone.kv<@kv>
  }}
}}
"""
STATELESS = """
module {{
  func.func @forward(%q: tensor<?x{heads}x?x{size}xf32> {{onnx.name = "q", onnx.dims = ["batch", "", "fresh", ""]}},
      %keys: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "k", onnx.dims = ["batch", "", "fresh", ""]}},
      %values: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "v", onnx.dims = ["batch", "", "fresh", ""]}},
      %pad: tensor<?xi64> {{onnx.name = "pad", onnx.dims = ["batch"]}}{argument})
      -> (tensor<?x{heads}x?x{size}xf32> {{onnx.name = "out"}}) {{
    %0 = hone.attention %q, %keys, %values pattern(#hone.causal) scale({scale}) {bias} {begin}
       : ({types}) -> tensor<?x{heads}x?x{size}xf32>
    return %0 : tensor<?x{heads}x?x{size}xf32>
  }}
}}
"""
# Types of the cache, and how far results may be apart. Lists and masks divide keys into other steps, and products round what they multiply by
# step: bf16 products the probabilities, of values up to 4, by 2^-9; caches of integers the probabilities times the steps of values, by 2^-16 of
# the largest, for each of hundreds of keys. The others add up in another order alone.
CACHES = {"f32": 2e-5, "bf16": 4 * 2**-9, "f16": 2e-5, "int8": 2**-10, "int4": 2**-10}
# How far importances have to be apart, as a part of the greater: pooled keys are means of keys as the cache keeps them.
MARGINS = {"f32": 1e-4, "bf16": 0.02, "f16": 4e-3, "int8": 0.02, "int4": 0.2}
# Bounds of keys are compared for keys that a cache holds as they are: those of rounded keys are others.
MARGIN_OF_BOUNDS = 1e-4
# Sinks, window, blocks that are selected, whether they are by bounds, keys of a block, and whether sequences are padded at their left.
PATTERNS = [(10, 100, 0, False, BLOCK, False), (64, 64, 0, False, BLOCK, False), (0, 1, 0, False, BLOCK, False), (100, 130, 0, False, BLOCK, True),
            (10, 130, 3, False, BLOCK, False), (0, 128, 1, False, BLOCK, True), (64, 200, 2, False, BLOCK, True), (64, 128, 20, False, BLOCK, False),
            (10, 130, 3, True, BLOCK, False), (0, 128, 1, True, BLOCK, True), (64, 128, 20, True, BLOCK, False),
            (100, 300, 3, False, 16, True), (10, 50, 3, True, 16, False), (10, 256, 1, True, 128, True)]


class Share(typing.NamedTuple):
    """A share of their attention that the queries of a prompt see, by sums over antidiagonals; or with `similarity` by means, and then the share of
    the blocks that they see at least."""
    sinks: int
    window: int
    share: float
    is_padded: bool
    least: float = 0
    similarity: typing.Optional[float] = None
    decode: int = 0  # blocks that single queries of calls with few of them select by bounds; 0: they see all


SHARES = [Share(0, 1, 0.5, False), Share(64, 128, 0.8, False), Share(10, 70, 0.8, True), Share(10, 70, 1.0, False), Share(0, 1, 0.5, False, 0, -1),
          Share(64, 128, 0.8, False, 0, 0.2), Share(10, 70, 0.6, True, 0.3, -0.5), Share(10, 70, 1.0, False, 0, 0.3), Share(0, 64, 0.01, True, 0.5, 0.0),
          Share(10, 140, 0.6, True, 0, -1, 3), Share(64, 128, 0.8, False, decode=2)]
FEW = 64  # queries of a call that sees all
PADDING = np.array([70, 5], np.int64)
SCALE = 0.25


def module_text(module, has_bias, is_padded):
    query, keys = f"tensor<?x{HEADS}x?x{SIZE}xf32>", f"tensor<?x{KEY_HEADS}x?x{SIZE}xf32>"
    types = [query, keys, keys] + [f"tensor<?x{HEADS}x?x?xf32>"] * has_bias + ["tensor<?xi64>"] * is_padded
    argument = f', %bias: tensor<?x{HEADS}x?x?xf32> {{onnx.name = "bias", onnx.dims = ["batch", "", "fresh", "all"]}}' if has_bias else ""
    return module.format(scale=SCALE, heads=HEADS, kv=KEY_HEADS, size=SIZE, argument=argument, types=", ".join(types),
                         bias="bias(%bias)" if has_bias else "", begin="key_begin(%pad)" if is_padded else "")


def importance(query, keys, begin, blocks, has_bounds, block):
    """The sum over the query heads of each KV head of the softmax over `blocks` of the products with their mean keys, or of the largest that
    a key within the bounds of theirs can have."""
    of_blocks = [keys[:, max(begin, n * block):(n + 1) * block].astype(np.float64) for n in blocks]
    query = SCALE * query.reshape(KEY_HEADS, -1, 1, SIZE).astype(np.float64)
    pool = lambda reduce: query * np.stack([reduce(block, axis=1) for block in of_blocks], axis=1)[:, None]
    scores = (np.maximum(pool(np.max), pool(np.min)) if has_bounds else pool(np.mean)).sum(axis=-1)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (scores / scores.sum(axis=-1, keepdims=True)).sum(axis=1)


def select(query, keys, begin, first, end, count, has_bounds, block, margin):
    """The blocks from `first` to `end` that each KV head selects, and whether they are clearly the most important."""
    blocks = list(range(first, end))
    if len(blocks) <= count:
        return [blocks] * KEY_HEADS, True
    values = importance(query, keys, begin, blocks, has_bounds, block)
    order = np.argsort(-values, axis=-1)
    least, next_one = (np.take_along_axis(values, order[:, place:place + 1], axis=-1) for place in (count - 1, count))
    return [[blocks[i] for i in row[:count]] for row in order], bool(((least - next_one) > margin * least).all())


def visible(arrays, keys, first, pattern, begins, margin):
    """Which keys each query sees by the definition of the pass, `[sequences, heads, count, keys]`, and of which queries that is clear."""
    sinks, window, blocks, has_bounds, block, _ = pattern
    count = arrays["q"].shape[2]
    numbers = np.arange(first + count) // block
    seen = np.zeros((len(begins), KEY_HEADS, count, first + count), bool)
    is_clear = np.ones((len(begins), count), bool)
    for sequence, begin in enumerate(begins):
        sink_begin, sink_end = begin // block, -(-(begin + sinks) // block) if sinks > 0 else 0
        for query in range(count):
            own = first + query
            window_begin = max(own - window + 1, 0) // block
            lists, is_clear[sequence, query] = select(arrays["q"][sequence, :, query], keys[sequence], begin, max(sink_begin, sink_end),
                                                      window_begin, blocks, has_bounds, block, margin) if blocks else ([[]] * KEY_HEADS, True)
            forced = ((numbers >= sink_begin) & (numbers < sink_end)) | (numbers >= window_begin)
            for head, selected in enumerate(lists):
                seen[sequence, head, query] = (forced | np.isin(numbers, selected)) & (np.arange(first + count) <= own)
    return np.repeat(seen, HEADS // KEY_HEADS, axis=1), is_clear


def importance_of_lists(query, keys, first, pattern, key_begin):
    """What lists of blocks go by: the importance of blocks, which are listed whatever it is, which count, and the queries of a list."""
    if pattern.similarity is not None:
        values, is_listed, is_visible, distance = means.importance(query, keys, first, pattern.similarity, key_begin)
        return values, is_listed, is_visible, distance, means.QUERIES
    values = antidiagonals.importance(query, keys, first, key_begin)
    return values, np.zeros(values.shape, bool), np.ones(values.shape[1:], bool), np.ones(values.shape[:2]), BLOCK


def visible_of_share(arrays, keys, first, pattern, begins):
    """The same as `visible` for lists of blocks of queries with a share of their attention."""
    sinks, window, share = pattern[:3]
    count = arrays["q"].shape[2]
    if pattern.decode and count <= FEW:
        return visible(arrays, keys, first, (sinks, window, pattern.decode, True, BLOCK, pattern.is_padded), begins, MARGIN_OF_BOUNDS)
    numbers, own = np.arange(first + count) // BLOCK, first + np.arange(count)
    causal = np.arange(first + count) <= own[:, None]
    seen, is_clear = np.broadcast_to(causal, (2, KEY_HEADS, *causal.shape)).copy(), np.ones((2, count), bool)
    for sequence in range(2 if count > FEW else 0):
        key_begin = begins[sequence]
        importance, is_listed, is_visible, distance, per_list = importance_of_lists(
            SCALE * arrays["q"][sequence], keys[sequence], first, pattern, key_begin)
        for begin in range(0, count, per_list):
            queries = slice(begin, min(begin + per_list, count))
            sink_begin, sink_end = key_begin // BLOCK, -(-(key_begin + sinks) // BLOCK) if sinks else 0
            end = max(max(first + begin - window + 1, 0) // BLOCK, sink_end)
            for head in range(KEY_HEADS):
                mass, counts = importance[head, begin // per_list], is_visible[begin // per_list]
                is_clear[sequence, queries] &= distance[head, begin // per_list] > MARGIN_OF_BOUNDS
                others = [n for n in range(len(mass)) if n < max(sink_begin, sink_end) or n >= end]
                is_sure = is_listed[head, begin // per_list]
                listed = others + [n for n in range(max(sink_begin, sink_end), end) if is_sure[n]]
                total, kept, blocks = mass.sum(), mass[listed].sum(), sum(counts[others]) + len(listed) - len(others)
                order = sorted((n for n in range(max(sink_begin, sink_end), end) if not is_sure[n]), key=lambda n: -mass[n])
                for place, n in enumerate(order):
                    is_near = abs(kept - share * total) < MARGIN_OF_BOUNDS * total
                    is_near |= place > 0 and mass[order[place - 1]] - mass[n] < MARGIN_OF_BOUNDS * total
                    is_clear[sequence, queries] &= share == 1 or not is_near
                    if share < 1 and kept >= share * total and blocks >= pattern.least * counts.sum():
                        break
                    listed.append(n)
                    kept += mass[n]
                    blocks += 1
                seen[sequence, head, queries] &= np.isin(numbers, listed)
    return np.repeat(seen, HEADS // KEY_HEADS, axis=1), is_clear


def compile_sessions(tools, library, folder, module, cache, pattern):
    if isinstance(pattern, Share):
        sinks, window, share, is_padded = pattern[:4]
        options = ["--attention=xattention", f"--attention-share={share}"]
        if pattern.similarity is not None:
            options = ["--attention=sparge", f"--attention-share={share}", f"--attention-top-k={pattern.least}",
                       f"--attention-similarity={pattern.similarity}"]
        options += ["--attention-decode=quest", f"--attention-blocks={pattern.decode}"] if pattern.decode else []
    else:
        sinks, window, blocks, has_bounds, block, is_padded = pattern
        options = [f"--attention={'quest' if has_bounds else 'top-blocks'}", f"--attention-blocks={blocks}"] if blocks else ["--attention=sinks-window"]
        options.append(f"--attention-block-size={block}")
    options += [f"--attention-sinks={sinks}", f"--attention-window={window}"]
    sessions = []
    for name, has_bias in [("sparse", False), ("dense", True)]:
        source, artefact = (folder / f"{name}-{cache}-{'-'.join(map(str, pattern))}.{ending}" for ending in ("mlir", "hone"))
        source.write_text(module_text(module, has_bias, is_padded))
        suite.run_tool([tools / "hone", "compile", source, "--start-from=rewrite", f"--kv-cache={cache}", *([] if has_bias else options),
                        "-o", artefact, "--quiet"])
        sessions.append(runtime.Session(runtime.Module(library, artefact)))
    return sessions


def hold(keys, cache):
    """Keys that the cache holds as they are: numbers of few bits, the greatest code of integers in each."""
    if cache == "int4":
        keys, last = np.clip(np.round(3 * keys + 7), 0, 15) / 8 - 1, [-1, 0.875]
    else:
        keys, last = np.clip(np.round(32 * keys), -127, 127) / 64, [127 / 64]
    keys[..., :len(last)] = last
    return keys.astype(np.float32)


def feed(random, held, count, cache, has_bounds, block=BLOCK):
    """Fresh queries, keys and values, of standard deviation 1. Keys of a block have most of them in common, so that blocks differ."""
    shapes = {"q": HEADS, "k": KEY_HEADS, "v": KEY_HEADS}
    arrays = {name: random.standard_normal((2, heads, count, SIZE)).astype(np.float32) for name, heads in shapes.items()}
    of_blocks = [np.random.default_rng((held + i) // block).standard_normal((2, KEY_HEADS, SIZE)) for i in range(count)]
    arrays["k"] = (0.6 * arrays["k"] + 0.8 * np.stack(of_blocks, axis=2)).astype(np.float32)
    if has_bounds:
        arrays["k"] = hold(arrays["k"], cache)
    return arrays | {"pad": PADDING}


def compare(dense_session, sparse, arrays, keys, held, cache, pattern):
    """Fails where results are not those of dense attention with a mask; of how many queries they were compared, and of how many there are."""
    count, begins = arrays["q"].shape[2], np.zeros(2, np.int64)
    begins = PADDING if (pattern.is_padded if isinstance(pattern, Share) else pattern[-1]) else begins
    if isinstance(pattern, Share):
        seen, is_clear = visible_of_share(arrays, keys, held, pattern, begins)
    else:
        seen, is_clear = visible(arrays, keys, held, pattern, begins, MARGIN_OF_BOUNDS if pattern[3] else MARGINS[cache])
    dense = dense_session.forward(arrays | {"bias": np.where(seen, np.float32(0), np.float32(-np.inf))}, "out")
    alive = held + np.arange(count) >= begins[:, None]  # a query in the padding sees nothing, or what nobody reads
    difference = np.abs(sparse - dense).max(axis=(1, 3))[alive & is_clear].max(initial=0)
    if not difference <= CACHES[cache]:
        raise suite.Failure(f"{count} tokens after {held}: expected dense attention with a mask, but differ by {difference}")
    return np.array([(alive & is_clear).sum(), alive.sum()])


def check(tools, library, folder, cache, pattern):
    sparse_session, dense_session = compile_sessions(tools, library, folder, MODULE, cache, pattern)
    random = np.random.default_rng(1)
    one_by_one, held, keys, compared = sparse_session.fork(), 0, np.zeros((2, KEY_HEADS, 0, SIZE), np.float32), np.zeros(2)
    for count in [421, 1, 1, 9, 70, 1, 300, 2]:
        arrays = feed(random, held, count, cache, pattern[3], pattern[4])
        keys = np.concatenate([keys, arrays["k"]], axis=2)
        sparse = sparse_session.forward(arrays, "out")
        compared += compare(dense_session, sparse, arrays, keys, held, cache, pattern)
        if count <= 64:  # of more, sums are ordered as is fastest
            steps = [one_by_one.forward({name: array[:, :, i:i + 1].copy() if name != "pad" else array for name, array in arrays.items()}, "out")
                     for i in range(count)]
            if not np.array_equal(np.concatenate(steps, axis=2), sparse):
                raise suite.Failure(f"{count} tokens after {held}: expected those of one by one")
        else:
            one_by_one.forward(arrays, "out")
        held += count
    if compared[0] < compared[1] / 2:
        raise suite.Failure(f"expected selections to be clear for most queries, but they are for {compared[0]} of {compared[1]}")


def check_share(tools, library, folder, cache, pattern):
    """Calls of more tokens than a block and of fewer, which see all keys."""
    sparse_session, dense_session = compile_sessions(tools, library, folder, MODULE, cache, pattern)
    random = np.random.default_rng(2)
    held, keys, compared = 0, np.zeros((2, KEY_HEADS, 0, SIZE), np.float32), np.zeros(2)
    for count in [421, 1, 64, 65, 300, 9]:
        arrays = feed(random, held, count, cache, True)
        keys = np.concatenate([keys, arrays["k"]], axis=2)
        compared += compare(dense_session, sparse_session.forward(arrays, "out"), arrays, keys, held, cache, pattern)
        held += count
    if compared[0] < compared[1] / 2:
        raise suite.Failure(f"expected selections to be clear for most queries, but they are for {compared[0]} of {compared[1]}")


def check_skipping(tools, library, folder, cache):
    """One that skips nothing gives the bits of dense attention; one that skips many keeps to its bound, and gives each token the same bits alone."""
    sessions = {}
    for factor in (None, 1e-30, 2.0):
        source, artefact = (folder / f"skip-{cache}-{factor}.{ending}" for ending in ("mlir", "hone"))
        source.write_text(module_text(MODULE, False, True))
        options = [] if factor is None else ["--attention=skip-softmax", f"--attention-skip={factor}"]
        suite.run_tool([tools / "hone", "compile", source, "--start-from=rewrite", f"--kv-cache={cache}", *options, "-o", artefact, "--quiet"])
        sessions[factor] = runtime.Session(runtime.Module(library, artefact))
    random, one_by_one = np.random.default_rng(3), sessions[2.0].fork()
    held, greatest, differs = 0, 0.0, cache in ("bf16", "f16")  # of which tiles of AMX skip nothing
    for count in [900, 1, 9, 70, 1, 3]:
        arrays = feed(random, held, count, cache, False)
        arrays["q"] *= 6
        dense, same, skipping = (sessions[factor].forward(arrays, "out") for factor in sessions)
        if not np.array_equal(dense, same):
            raise suite.Failure(f"{count} tokens after {held}: expected the bits of dense attention")
        greatest = max(greatest, np.abs(arrays["v"]).max())
        most = 2 * greatest * 2 / 3  # twice the values times factor / (1 + factor)
        if not np.abs(dense - skipping).max() <= most + CACHES[cache]:
            raise suite.Failure(f"{count} tokens after {held}: expected to differ by {most} at most, but got {np.abs(dense - skipping).max()}")
        differs |= not np.array_equal(dense, skipping)
        steps = [one_by_one.forward({name: array[:, :, i:i + 1].copy() if name != "pad" else array for name, array in arrays.items()}, "out")
                 for i in range(count)] if count <= 64 else [one_by_one.forward(arrays, "out")]
        if not np.array_equal(np.concatenate(steps, axis=2), skipping):
            raise suite.Failure(f"{count} tokens after {held}: expected those of one by one")
        held += count
    if not differs:
        raise suite.Failure("expected some keys to be skipped")


def check_errors(tools, library, folder, pattern):
    """What `hone-measure-selection` says that attention over selected blocks loses, for a prompt of one sequence."""
    query, keys = f"tensor<?x{HEADS}x?x{SIZE}xf32>", f"tensor<?x{KEY_HEADS}x?x{SIZE}xf32>"
    source, measured, artefact = (folder / f"errors-{pattern.share}-{pattern.similarity}.{ending}" for ending in ("mlir", "measured.mlir", "hone"))
    tokens = '%ids: tensor<?x?xi64> {{onnx.name = "ids", onnx.dims = ["batch", "fresh"]}}, '
    source.write_text(MODULE.replace("@forward(", "@forward(" + tokens).format(
        scale=SCALE, heads=HEADS, kv=KEY_HEADS, size=SIZE, argument="", types=f"{query}, {keys}, {keys}", bias="", begin=""))
    passes = [f"--hone-retain-keys=policy=prefix budget={2**20} sinks=0 recent=1",
              f"--hone-measure-selection=sinks={pattern.sinks} window={pattern.window}"]
    suite.run_tool([tools / "hone-opt", source, *passes, "-o", measured])
    suite.run_tool([tools / "hone", "compile", measured, "--start-from=rewrite", "-o", artefact, "--quiet"])
    session, count = runtime.Session(runtime.Module(library, artefact)), 421
    arrays = {name: array[:1] for name, array in feed(np.random.default_rng(4), 0, count, "f32", False).items()}
    session.forward(arrays | {"ids": np.zeros((1, count), np.int64)}, "out")
    dense = session.call("attention_outputs", {}, "output.key")
    thresholds = np.broadcast_to(np.float32([pattern.least, pattern.share, pattern.similarity]), (1, KEY_HEADS, 3)).copy()
    given = {"thresholds.key": thresholds, "output.key": dense}
    found = {name: session.call("selection_errors", given, f"{name}.key") for name in ("difference", "magnitude", "blocks")}

    twice = {name: np.concatenate([array, array]) for name, array in arrays.items()}
    seen, is_clear = (part[:1] for part in visible_of_share(twice, twice["k"], 0, pattern, np.zeros(2, np.int64)))
    if not is_clear.all():
        raise suite.Failure("expected the selection of all queries to be clear")
    k, v = (np.repeat(arrays[name].astype(np.float64), HEADS // KEY_HEADS, axis=1) for name in ("k", "v"))
    logits = SCALE * arrays["q"].astype(np.float64) @ k.swapaxes(-1, -2)
    attend = lambda mask: np.where(mask, np.exp(logits), 0) / np.where(mask, np.exp(logits), 0).sum(axis=-1, keepdims=True) @ v
    exact = attend(np.tri(count, dtype=bool))
    per_head = lambda values: values.reshape(KEY_HEADS, -1).sum(axis=1)
    lists = seen[:, ::HEADS // KEY_HEADS, np.minimum(np.arange(means.QUERIES - 1, count + means.QUERIES - 1, means.QUERIES), count - 1)]
    wanted_blocks = np.add.reduceat(lists, np.arange(0, count, BLOCK), axis=-1) > 0
    wanted = {"difference": per_head(np.abs(attend(seen) - exact)), "magnitude": per_head(np.abs(exact)),
              "blocks": per_head(wanted_blocks)}
    if not np.abs(dense - exact).max() <= CACHES["f32"]:
        raise suite.Failure(f"expected attention over all keys, but got {np.abs(dense - exact).max()} more or less")
    listed = np.zeros((1, *wanted_blocks.shape[1:]), bool)
    found_lists = session.call("selection_errors", given, "lists.key")
    for place in np.argwhere(found_lists >= 0):
        listed[(*place[:3], found_lists[tuple(place)])] = True
    if not np.array_equal(listed, wanted_blocks):
        raise suite.Failure("expected the lists of other blocks")
    for name, values in wanted.items():
        if not np.allclose(found[name], values, rtol=1e-4):
            raise suite.Failure(f"expected {name} to be {values}, but got {found[name]}")


def check_stateless(tools, library, folder, pattern):
    own = folder / "stateless"
    own.mkdir(exist_ok=True)
    sparse_session, dense_session = compile_sessions(tools, library, own, STATELESS, "f32", pattern)
    for count in [1, 130, 500]:
        arrays = feed(np.random.default_rng(1), 0, count, "f32", pattern[3], pattern[4])
        compare(dense_session, sparse_session.forward(arrays, "out"), arrays, arrays["k"], 0, "f32", pattern)


def main():
    options = suite.parser(__doc__).parse_args()
    tools, library = options.build.resolve() / "bin", options.build.resolve() / "lib" / "libhone_rt.so"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [(f"{cache} sinks {pattern[0]} window {pattern[1]} blocks {pattern[2]} of {pattern[4]}{' by bounds' * pattern[3]}",
                  lambda cache=cache, pattern=pattern: check(tools, library, folder, cache, pattern))
                 for cache in CACHES for pattern in PATTERNS]
        cases += [(f"without a state, sinks {pattern[0]} window {pattern[1]} blocks {pattern[2]} of {pattern[4]}{' by bounds' * pattern[3]}",
                   lambda pattern=pattern: check_stateless(tools, library, folder, pattern)) for pattern in PATTERNS if pattern[2]]
        cases += [(f"{cache} sinks {pattern[0]} window {pattern[1]} share {pattern.share}{' padded' * pattern.is_padded}"
                   + ("" if pattern.similarity is None else f" and {pattern.least} by means with {pattern.similarity}")
                   + f" and {pattern.decode} blocks" * bool(pattern.decode),
                   lambda cache=cache, pattern=pattern: check_share(tools, library, folder, cache, pattern))
                  for cache in CACHES for pattern in SHARES]
        cases += [(f"errors with share {pattern.share} and {pattern.least} by means with {pattern.similarity}",
                   lambda pattern=pattern: check_errors(tools, library, folder, pattern))
                  for pattern in SHARES if pattern.similarity is not None and not pattern.is_padded]
        cases += [(f"{cache} skipping", lambda cache=cache: check_skipping(tools, library, folder, cache)) for cache in CACHES]
        return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
