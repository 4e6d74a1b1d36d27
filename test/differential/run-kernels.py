# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation that has a kernel, compiled to it and compiled as its decomposition: the same inputs, equal outputs.

Sizes that are capital letters are dynamic; each case is called with several values for its letters.
"""

import itertools
import pathlib
import re
import sys
import tempfile

import numpy as np

import suite

TOLERANCE = 1e-5  # f32 in another order of summation
SPREAD = 0.25  # standard deviation of the inputs, so that sums stay near 1
ROWS = [{"B": b, "S": s} for b, s in ((1, 1), (2, 7), (1, 0), (3, 16), (1, 65))]
ATTENTION = [{"B": b, "Q": q, "K": k} for b, q, k in ((1, 1, 1), (2, 5, 5), (1, 1, 70), (3, 4, 33), (1, 37, 131), (1, 0, 3))]
PER_SEQUENCE = {"begin": (0, 1), "end": (1, 40), "prefix": (0, 4)}  # least and most of what these operands say


def tensor(*sizes, element="f32"):
    return f"tensor<{'x'.join(map(str, [*sizes, element]))}>"


class Case:
    """One operation: its text without types, the types of its result and of its operands by name."""

    def __init__(self, kernel, text, result, values, **operands):
        self.kernel, self.text, self.result, self.values, self.operands = kernel, text, result, values, operands

    def module(self):
        arguments = ", ".join(f'%{name}: {type} {{onnx.name = "{name}"}}' for name, type in self.operands.items())
        text = (f"module attributes {{onnx.opsets = {{ai.onnx = 23 : i64}}}} {{\n"
                f'func.func @main({arguments}) -> ({self.result} {{onnx.name = "result"}}) {{\n'
                f"  %0 = {self.text} : ({', '.join(self.operands.values())}) -> {self.result}\n"
                f"  return %0 : {self.result}\n}}\n}}\n")
        return re.sub(r"(?<=[<x])[A-Z](?=x)", "?", text)

    def inputs(self, values, rng):
        arrays = {}
        for name, type in self.operands.items():
            shape = [values.get(size) if size.isalpha() else int(size) for size in type[len("tensor<"):].split("x")[:-1]]
            if name in PER_SEQUENCE:
                arrays[name] = rng.integers(*PER_SEQUENCE[name], shape, endpoint=True)
            else:
                arrays[name] = (SPREAD * rng.standard_normal(shape)).astype(np.float32)
        return arrays


def products():
    for rows, inner in ((1, 1), (33, 17), (64, 96)):
        operands = {"x": tensor("B", "S", inner), "w": tensor(rows, inner)}
        result = tensor("B", "S", rows)
        yield Case("hone.linear.f32", "hone.linear %x, %w", result, ROWS, **operands)
        yield Case("hone.linear.f32", "hone.linear %x, %w bias(%b)", result, ROWS, **operands, b=tensor(rows))
    for x, w in ((tensor("B", 3, "S", 8), tensor("B", 3, 8, 5)), (tensor("B", 1, "S", 8), tensor(3, 8, 5))):
        yield Case("hone.matmul.f32", "hone.matmul %x, %w", tensor("B", 3, "S", 5), ROWS, x=x, w=w)


def norms():
    for size in (1, 15, 64, 100):
        x, w = tensor("B", "S", size), tensor(size)
        yield Case("hone.rms_norm.f32", "hone.rms_norm %x, %w epsilon(1.0e-5)", x, ROWS, x=x, w=w)
        yield Case("hone.rms_norm.f32", "hone.rms_norm %x, %w epsilon(1.0e-5) unit_offset", x, ROWS, x=x, w=w)
        yield Case("hone.layer_norm.f32", "hone.layer_norm %x, %w epsilon(1.0e-5)", x, ROWS, x=x, w=w)
        yield Case("hone.layer_norm.f32", "hone.layer_norm %x, %w bias(%b) epsilon(1.0e-5)", x, ROWS, x=x, w=w, b=w)


def ropes():
    for size, pairs, form, batch in itertools.product((16, 34), (3, 8), ("", " interleaved"), (1, "B")):
        x, table = tensor("B", 3, "S", size), tensor(batch, "S", pairs)
        yield Case("hone.rope.f32", f"hone.rope %x, %cos, %sin{form}", x, ROWS, x=x, cos=table, sin=table)


def attentions():
    everything = {"bias": tensor("B", 4, "Q", "K"), "alibi": tensor(4), "sinks": tensor(4),
                  "begin": tensor("B", element="i64"), "end": tensor("B", element="i64")}
    for pattern, heads, size in itertools.product(("full", "causal", "sliding<window = 3>", "prefix_causal"), (1, 2, 4), (8, 20)):
        operands = {"q": tensor("B", 4, "Q", size), "k": tensor("B", heads, "K", size), "v": tensor("B", heads, "K", 12)}
        text = f"hone.attention %q, %k, %v pattern(#hone.{pattern}) scale(0.3)"
        if size == 20:
            text += " softcap(5.0) bias(%bias) alibi(%alibi) sinks(%sinks) key_begin(%begin) key_end(%end)"
            operands |= everything
        if pattern == "prefix_causal":
            text += " prefix(%prefix)"
            operands["prefix"] = tensor("B", element="i64")
        yield Case("hone.attention.f32", text, tensor("B", 4, "Q", 12), ATTENTION, **operands)


def mlps():
    x, inner, outer = tensor("B", "S", 24), tensor(40, 24), tensor(24, 40)
    for activation in ("silu", "gelu", "gelu_tanh", "relu"):
        yield Case("hone.linear.f32", f"hone.gated_mlp {activation} %x, gate(%g), up(%u), down(%d)", x, ROWS,
                   x=x, g=inner, u=inner, d=outer)
        yield Case("hone.linear.f32", f"hone.mlp {activation} %x, up(%u, %b), down(%d)", x, ROWS,
                   x=x, u=inner, d=outer, b=tensor(40))


def compile_case(tools, folder, case, flags, has_kernel):
    artefact = folder / ("kernel.hone" if has_kernel else "loops.hone")
    suite.run_tool([tools / "hone", "compile", folder / "case.mlir", "--start-from=rewrite", *flags, "-o", artefact])
    if (f'"{case.kernel}"' in (artefact / "manifest.json").read_text()) != has_kernel:
        raise suite.Failure(f"expected {'a' if has_kernel else 'no'} call of {case.kernel}")
    return artefact


def check(case, tools):
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "case.mlir").write_text(case.module())
        kernel = compile_case(tools, folder, case, [], True)
        loops = compile_case(tools, folder, case, ["--pass-pipeline=func.func(hone-decompose)"], False)
        given, expected = folder / "in.npz", folder / "out.npz"
        for values in case.values:
            np.savez(given, **case.inputs(values, rng))
            suite.run_tool([tools / "hone-run", "run", loops, "--inputs", given, "--outputs", expected])
            suite.run_tool([tools / "hone-run", "run", kernel, "--inputs", given, "--expect", expected,
                            "--rtol", TOLERANCE, "--atol", TOLERANCE])


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(case.text, case) for case in itertools.chain(products(), norms(), ropes(), attentions(), mlps())]
    chosen = [(name, case) for name, case in cases if options.only in name]
    return suite.run_all(chosen, lambda case: check(case, options.build / "bin"), options.jobs)


sys.exit(main())
