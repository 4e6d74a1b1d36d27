#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention (hone compile --attention) beside dense attention with a mask of the same meaning.

One layer of attention over a state, with grouped heads and padded sequences, in every type of KV cache: a prompt and tokens after it equal
dense attention whose bias hides the other keys; tokens that are fed together equal those that are fed one by one, bit for bit.
"""

import pathlib
import tempfile

import numpy as np

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
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.25) {bias} {begin}
       : ({types}) -> tensor<?x{heads}x?x{size}xf32>
    return %2, %1 : tensor<?x{heads}x?x{size}xf32>, !hone.kv<@kv>
  }}
}}
"""
# Types of the cache, and how far results may be apart. Lists and masks divide keys into other steps, and products round what they multiply by
# step: bf16 products the probabilities, of values up to 4, by 2^-9; caches of integers the probabilities times the steps of values, by 2^-16 of
# the largest, for each of hundreds of keys. The others add up in another order alone.
CACHES = {"f32": 2e-5, "bf16": 4 * 2**-9, "f16": 2e-5, "int8": 2**-10, "int4": 2**-10}
# Sinks, window, and whether sequences are padded at their left.
PATTERNS = [(10, 100, False), (64, 64, False), (0, 1, False), (100, 130, True)]
PADDING = np.array([70, 5], np.int64)


def module_text(has_bias, is_padded):
    query, keys = f"tensor<?x{HEADS}x?x{SIZE}xf32>", f"tensor<?x{KEY_HEADS}x?x{SIZE}xf32>"
    types = [query, keys, keys] + ["tensor<?x1x?x?xf32>"] * has_bias + ["tensor<?xi64>"] * is_padded
    argument = ', %bias: tensor<?x1x?x?xf32> {onnx.name = "bias", onnx.dims = ["batch", "", "fresh", "all"]}' if has_bias else ""
    return MODULE.format(heads=HEADS, kv=KEY_HEADS, size=SIZE, argument=argument, types=", ".join(types),
                         bias="bias(%bias)" if has_bias else "", begin="key_begin(%pad)" if is_padded else "")


def bias(first, count, sinks, window, begins):
    """0 where a query sees a key by the definition of the pass, else minus infinity: `[sequences, 1, count, first + count]`."""
    visible = np.zeros((len(begins), 1, count, first + count), bool)
    keys = np.arange(first + count)
    for sequence, begin in enumerate(begins):
        sink = (keys // BLOCK >= begin // BLOCK) & (keys // BLOCK < -(-(begin + sinks) // BLOCK)) & (sinks > 0)
        for query in range(count):
            own = first + query
            recent = keys // BLOCK >= max(own - window + 1, 0) // BLOCK
            visible[sequence, 0, query] = (sink | recent) & (keys <= own)
    return np.where(visible, np.float32(0), np.float32(-np.inf))


def check(tools, library, folder, cache, pattern):
    sinks, window, is_padded = pattern
    sessions = {}
    for name, options in {"sparse": ["--attention=sinks-window", f"--attention-sinks={sinks}", f"--attention-window={window}"],
                          "dense": []}.items():
        source, artefact = folder / f"{name}-{cache}-{sinks}-{window}.mlir", folder / f"{name}-{cache}-{sinks}-{window}.hone"
        source.write_text(module_text(name == "dense", is_padded))
        suite.run_tool([tools / "hone", "compile", source, "--start-from=rewrite", f"--kv-cache={cache}", *options, "-o", artefact, "--quiet"])
        sessions[name] = runtime.Session(runtime.Module(library, artefact))
    begins = PADDING if is_padded else np.zeros(2, np.int64)
    random = np.random.default_rng(1)
    one_by_one, held = sessions["sparse"].fork(), 0
    for count in [421, 1, 1, 9, 70, 1, 300, 2]:
        shapes = {"q": HEADS, "k": KEY_HEADS, "v": KEY_HEADS}
        arrays = {name: random.standard_normal((2, heads, count, SIZE)).astype(np.float32) for name, heads in shapes.items()}
        arrays["pad"] = PADDING
        sparse = sessions["sparse"].forward(arrays, "out")
        dense = sessions["dense"].forward(arrays | {"bias": bias(held, count, sinks, window, begins)}, "out")
        alive = held + np.arange(count) >= begins[:, None]  # a query in the padding sees nothing, or what nobody reads
        difference = np.abs(sparse - dense).max(axis=(1, 3))[alive].max()
        if not difference <= CACHES[cache]:
            raise suite.Failure(f"{count} tokens after {held}: expected dense attention with a mask, but differ by {difference}")
        if count <= 64:  # of more, sums are ordered as is fastest
            steps = [one_by_one.forward({name: array[:, :, i:i + 1].copy() if name != "pad" else array for name, array in arrays.items()}, "out")
                     for i in range(count)]
            if not np.array_equal(np.concatenate(steps, axis=2), sparse):
                raise suite.Failure(f"{count} tokens after {held}: expected those of one by one")
        else:
            one_by_one.forward(arrays, "out")
        held += count


def main():
    options = suite.parser(__doc__).parse_args()
    tools, library = options.build.resolve() / "bin", options.build.resolve() / "lib" / "libhone_rt.so"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [(f"{cache} sinks {pattern[0]} window {pattern[1]}",
                  lambda cache=cache, pattern=pattern: check(tools, library, folder, cache, pattern))
                 for cache in CACHES for pattern in PATTERNS]
        return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
