#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that decide by their state which keys matter, for CUDA on the emulated driver (test/emulation) against the CPU.

Linear attention after a causal convolution, over a state that is replaced, by every rule; and sparse attention whose blocks are selected
(hone compile --attention). Prompts, steps and several tokens at once have the CPU's answers, also after a return to a checkpoint; the kernels
that are meant run, and no step waits for the device but at its end.
"""

import ctypes
import json
import pathlib
import re
import tempfile

import numpy as np

import runtime
import suite

SEQUENCES, QUERY_HEADS, HEADS, KEYS, VALUES, TAPS = 2, 4, 2, 16, 12, 4
CHANNELS = (QUERY_HEADS + HEADS) * KEYS + HEADS * VALUES
LINEAR = """
module attributes {{onnx.opsets = {{ai.onnx = 21 : i64, com.microsoft = 1 : i64}}}} {{
  hone.state @kv [#hone.slot<"conv", tensor<?x{channels}x{held}xf32>>, #hone.slot<"matrix", tensor<?x{heads}x{keys}x{values}xf32>>]
  hone.param @weight : tensor<{channels}x1x{taps}xf32> = dense<[{weight}]> : tensor<{channels}x1x{taps}xf32>
  func.func @forward(%x: tensor<?x{channels}x?xf32> {{onnx.name = "x", onnx.dims = ["batch", "", "fresh"]}}{arguments}, %s: !hone.kv<@kv>)
      -> (tensor<?x?x{query_heads}x{values}xf32> {{onnx.name = "out"}}, !hone.kv<@kv>) {{
    %weight = hone.get_param @weight : tensor<{channels}x1x{taps}xf32>
    %none = "onnx.NoValue"() : () -> none
    %sizes = "onnx.Constant"() {{value = dense<[{queries}, {flat}, {outs}]> : tensor<3xi64>}} : () -> tensor<3xi64>
    %before = hone.kv_view %s[0] : !hone.kv<@kv> -> tensor<?x{channels}x{held}xf32>
    %matrix = hone.kv_view %s[1] : !hone.kv<@kv> -> tensor<?x{heads}x{keys}x{values}xf32>
    %y, %after = "onnx.com.microsoft.CausalConvWithState"(%x, %weight, %none, %before) {{activation = "silu"}}
       : (tensor<?x{channels}x?xf32>, tensor<{channels}x1x{taps}xf32>, none, tensor<?x{channels}x{held}xf32>)
       -> (tensor<?x{channels}x?xf32>, tensor<?x{channels}x{held}xf32>)
    %rows = "onnx.Transpose"(%y) {{perm = array<i64: 0, 2, 1>}} : (tensor<?x{channels}x?xf32>) -> tensor<?x?x{channels}xf32>
    %all:3 = "onnx.Split"(%rows, %sizes) {{axis = 2 : i64}} : (tensor<?x?x{channels}xf32>, tensor<3xi64>)
       -> (tensor<?x?x{queries}xf32>, tensor<?x?x{flat}xf32>, tensor<?x?x{outs}xf32>)
    %q_shape = "onnx.Constant"() {{value = dense<[0, 0, {query_heads}, {keys}]> : tensor<4xi64>}} : () -> tensor<4xi64>
    %k_shape = "onnx.Constant"() {{value = dense<[0, 0, {heads}, {keys}]> : tensor<4xi64>}} : () -> tensor<4xi64>
    %v_shape = "onnx.Constant"() {{value = dense<[0, 0, {heads}, {values}]> : tensor<4xi64>}} : () -> tensor<4xi64>
    %q = "onnx.Reshape"(%all#0, %q_shape) : (tensor<?x?x{queries}xf32>, tensor<4xi64>) -> tensor<?x?x{query_heads}x{keys}xf32>
    %k = "onnx.Reshape"(%all#1, %k_shape) : (tensor<?x?x{flat}xf32>, tensor<4xi64>) -> tensor<?x?x{heads}x{keys}xf32>
    %v = "onnx.Reshape"(%all#2, %v_shape) : (tensor<?x?x{outs}xf32>, tensor<4xi64>) -> tensor<?x?x{heads}x{values}xf32>
    %out, %next = hone.linear_attention %q, %k, %v {given} state(%matrix) scale(0.3)
       : ({types}) -> (tensor<?x?x{query_heads}x{values}xf32>, tensor<?x{heads}x{keys}x{values}xf32>)
    %0 = hone.kv_replace %s[0], %after : !hone.kv<@kv>, tensor<?x{channels}x{held}xf32>
    %1 = hone.kv_replace %0[1], %next : !hone.kv<@kv>, tensor<?x{heads}x{keys}x{values}xf32>
    return %out, %1 : tensor<?x?x{query_heads}x{values}xf32>, !hone.kv<@kv>
  }}
}}
"""
# By rule the shape of a token's decay and of its beta, none where the rule has none.
RULES = {"linear": ((), ()), "gated": ((HEADS, 1), ()), "gated by element": ((HEADS, KEYS), ()), "delta": ((), (1,)),
         "gated delta": ((HEADS, 1), (HEADS,)), "gated delta by element": ((HEADS, KEYS), (HEADS,))}
SPARSE_HEADS, SPARSE_SIZE = 4, 32
SPARSE = """
module {{
  hone.state @kv [#hone.slot<"key", tensor<?x{heads}x?x{size}xf32>, axis = 2>, #hone.slot<"value", tensor<?x{heads}x?x{size}xf32>, axis = 2>]
  func.func @forward(%q: tensor<?x{query_heads}x?x{size}xf32> {{onnx.name = "q", onnx.dims = ["batch", "", "fresh", ""]}},
      %k: tensor<?x{heads}x?x{size}xf32> {{onnx.name = "k", onnx.dims = ["batch", "", "fresh", ""]}},
      %v: tensor<?x{heads}x?x{size}xf32> {{onnx.name = "v", onnx.dims = ["batch", "", "fresh", ""]}}, %s: !hone.kv<@kv>)
      -> (tensor<?x{query_heads}x?x{size}xf32> {{onnx.name = "out"}}, !hone.kv<@kv>) {{
    %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x{heads}x?x{size}xf32> -> tensor<?x{heads}x?x{size}xf32>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x{heads}x?x{size}xf32> -> tensor<?x{heads}x?x{size}xf32>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.25)
       : (tensor<?x{query_heads}x?x{size}xf32>, tensor<?x{heads}x?x{size}xf32>, tensor<?x{heads}x?x{size}xf32>) -> tensor<?x{query_heads}x?x{size}xf32>
    return %2, %1 : tensor<?x{query_heads}x?x{size}xf32>, !hone.kv<@kv>
  }}
}}
"""
SELECTION = ["cuda.pool_keys.f32", "cuda.select_blocks.f32"]
TOLERANCE = 2e-5  # sums in f32 in other orders
MODEL, MODEL_TOLERANCE = "examples/python-lm/model.onnx", 1e-4  # whose linear layers keep 16 bits of mantissa
SPARSE_PATTERNS = [["--attention=sinks-window", "--attention-sinks=10", "--attention-window=100"],
                   ["--attention=top-blocks", "--attention-blocks=3", "--attention-sinks=10", "--attention-window=130"],
                   ["--attention=top-blocks", "--attention-blocks=1", "--attention-sinks=0", "--attention-window=128"]]


def linear_module(rule):
    random = np.random.default_rng(3)
    weight = ", ".join(f"[[{', '.join(f'{tap:.6f}' for tap in taps)}]]" for taps in random.standard_normal((CHANNELS, TAPS)) / 2)
    given, arguments = [], ""
    types = [f"tensor<?x?x{heads}x{size}xf32>" for heads, size in ((QUERY_HEADS, KEYS), (HEADS, KEYS), (HEADS, VALUES))]
    for name, shape in zip(("decay", "beta"), RULES[rule]):
        if shape:
            given.append(f"{name}(%{name})")
            types.append(f"tensor<?x?x{'x'.join(map(str, shape))}xf32>")
            dims = ["batch", "fresh"] + [""] * len(shape)
            arguments += f', %{name}: {types[-1]} {{onnx.name = "{name}", onnx.dims = {json.dumps(dims)}}}'
    types.append(f"tensor<?x{HEADS}x{KEYS}x{VALUES}xf32>")
    return LINEAR.format(channels=CHANNELS, held=TAPS - 1, taps=TAPS, heads=HEADS, query_heads=QUERY_HEADS, keys=KEYS, values=VALUES,
                         queries=QUERY_HEADS * KEYS, flat=HEADS * KEYS, outs=HEADS * VALUES, weight=weight, arguments=arguments,
                         given=" ".join(given), types=", ".join(types))


def linear_inputs(rule, random, count):
    arrays = {"x": random.standard_normal((SEQUENCES, CHANNELS, count))}
    arrays["x"][:, QUERY_HEADS * KEYS:(QUERY_HEADS + HEADS) * KEYS] /= np.sqrt(KEYS)  # else the delta rule grows
    decay, beta = RULES[rule]
    if decay:
        arrays["decay"] = -random.random((SEQUENCES, count, *decay))
    if beta:
        arrays["beta"] = random.random((SEQUENCES, count, *beta))
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def sparse_inputs(random, count):
    return {name: random.standard_normal((SEQUENCES, heads, count, SPARSE_SIZE)).astype(np.float32)
            for name, heads in (("q", SPARSE_HEADS), ("k", HEADS), ("v", HEADS))}


def waits_of(text):
    functions = re.split(r"^  func\.func ", text, flags=re.MULTILINE)
    return sum(function.count("hrt.fetch") for function in functions if re.match(r"(private )?@forward\b", function))


def open_sessions(build, folder, source, flags, kernels):
    """A session of the CPU and one of the device, whose program calls `kernels`."""
    sessions = []
    for target in ["--target=cpu"], ["--target=cuda", "--chip=sm_80", f"--save-ir={folder}"]:
        artefact = folder / f"{len(sessions)}.hone"
        suite.run_tool([build / "bin" / "hone", "compile", source, *target, *flags, "-o", artefact, "--quiet"])
        sessions.append(runtime.Session(runtime.Module(build / "lib" / "libhone_rt.so", artefact)))
    called = json.loads((artefact / "manifest.json").read_text())["kernels"]
    if missing := [kernel for kernel in kernels if kernel not in called]:
        raise suite.Failure(f"expected {', '.join(missing)} to be called, but got {', '.join(called)}")
    if waits := waits_of((folder / "5-buffer.mlir").read_text()):
        raise suite.Failure(f"the host waits {waits} times within a step")
    return sessions


def compare(sessions, arrays, what, output="out", tolerance=TOLERANCE):
    expected, got = (session.forward(arrays, output) for session in sessions)
    difference = np.abs(got - expected).max(initial=0)
    if not difference <= tolerance * (1 + np.abs(expected).max(initial=0)):
        raise suite.Failure(f"{what}: differs by {difference:.3g}")


def check(build, text, flags, kernels, inputs, counts):
    """Calls of so many tokens, one after the other; at the end some of them again, from a checkpoint."""
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name) / "model.mlir"
        source.write_text(text)
        sessions = open_sessions(build, pathlib.Path(name), source, flags, kernels)
        random, held = np.random.default_rng(1), 0
        for count in counts:
            compare(sessions, inputs(random, count), f"{count} tokens after {held}")
            held += count
        checkpoints = [session.checkpoint() for session in sessions]
        compare(sessions, inputs(random, 3), "3 tokens that are dropped")
        for session, checkpoint in zip(sessions, checkpoints):
            session.restore(checkpoint)
        compare(sessions, inputs(random, 2), "2 tokens from a checkpoint")
        for session in sessions:
            session.close()


def check_model(build, flags):
    """A language model goes on from a text that is long enough for selections."""
    from tokenizers import Tokenizer
    path = suite.ROOT / MODEL
    tokens = Tokenizer.from_file(str(path.with_name("tokenizer.json"))).encode(pathlib.Path(suite.__file__).read_text()).ids
    with tempfile.TemporaryDirectory() as name:
        sessions = open_sessions(build, pathlib.Path(name), path, flags, SELECTION)
        own = sessions[0].module.names("forward", runtime.INPUT)[0]
        begin = 0
        for end in [330, 331, 332, 333, 334, 340]:
            compare(sessions, {own: np.asarray(tokens[begin:end], np.int64)[None]}, f"tokens {begin} to {end}", "logits", MODEL_TOLERANCE)
            begin = end
        for session in sessions:
            session.close()


def main():
    options = suite.parser(__doc__).parse_args()
    build = options.build.resolve()
    # The runtime of this process and of those it starts: the loader knows by its name what is open.
    ctypes.CDLL(suite.use_emulated_driver(build) / "libcuda.so.1")
    cases = [(f"linear attention, {rule}",
              lambda rule=rule: check(build, linear_module(rule), [], ["cuda.linear_attention.f32"],
                                      lambda random, count: linear_inputs(rule, random, count), [37, 1, 1, 1, 1, 5, 1]))
             for rule in RULES]
    sparse = SPARSE.format(heads=HEADS, query_heads=SPARSE_HEADS, size=SPARSE_SIZE)
    cases += [(" ".join(flags),
               lambda flags=flags: check(build, sparse, ["--start-from=rewrite", *flags],
                                         ["cuda.attention.f32"] + SELECTION * flags[0].endswith("top-blocks"),
                                         sparse_inputs, [421, 1, 1, 1, 1, 9]))
              for flags in SPARSE_PATTERNS]
    cases += [(f"{MODEL} {' '.join(flags)}", lambda flags=flags: check_model(build, flags)) for flags in SPARSE_PATTERNS[1:]]
    return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
