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
# Kernels of quantized weights round activations to 16 bits where decompositions do not round them. An activation errs by
# 0.8 / 32767 / sqrt(12) = 7e-6, the sum of 700 products with weights near 0.7 by 1.3e-4, the worst of hundreds by 4 of those.
INTEGERS = 6e-4
# Where 8 bits are the least, kernels may multiply in bf16: 2^-9 in each factor of sums near 1, beside the 8 bits of the other side.
LEAST = 4e-2
# Two layers one after the other: the errors of the first pass through the second, which adds its own.
LEAST_OF_TWO = 2 * LEAST
BF16 = 2e-2  # codes with dot products of bf16 round activations to it, 2^-9 each
SPREAD = 0.25  # standard deviation of the inputs, so that sums stay near 1
ROWS = [{"B": b, "S": s} for b, s in ((1, 1), (2, 7), (1, 0), (3, 16), (1, 65))]
ATTENTION = [{"B": b, "Q": q, "K": k} for b, q, k in ((1, 1, 1), (2, 5, 5), (1, 1, 70), (3, 4, 33), (1, 37, 131), (1, 0, 3))]
INTEGERS_OF = {"begin": (0, 1), "end": (1, 40), "prefix": (0, 4), "ids": (-1, 4), "blocks": (-1, 8), "positions": (-3, 60),
               "ancestors": (0, 2**62), "first": (0, 2), "last": (1, 7)}  # least and most of what these operands say


def tensor(*sizes, element="f32"):
    return f"tensor<{'x'.join(map(str, [*sizes, element]))}>"


class Case:
    """One operation: its text without types, the types of its result, or a list of several, and of its operands by name. Those in `params`, by name
    a type and what it is stored as, are parameters instead of inputs."""

    def __init__(self, kernel, text, result, values, tolerance=TOLERANCE, params=None, **operands):
        self.kernel, self.text, self.result, self.values, self.operands = kernel, text, result, values, operands
        self.tolerance, self.params = tolerance, params or {}

    def name(self):
        return " ".join([self.kernel, self.text, *(type for type, _ in self.params.values())])

    def module(self):
        arguments = ", ".join(f'%{name}: {type} {{onnx.name = "{name}"}}' for name, type in self.operands.items())
        params = "".join(f"hone.param @{name} : {type} = {storage}\n" for name, (type, storage) in self.params.items())
        reads = "".join(f"  %{name} = hone.get_param @{name} : {type}\n" for name, (type, _) in self.params.items())
        types = [*self.operands.values(), *(type for type, _ in self.params.values())]
        results = self.result if isinstance(self.result, list) else [self.result]
        named = ", ".join(f'{type} {{onnx.name = "result{i}"}}' for i, type in enumerate(results))
        values = ", ".join(f"%{i}" for i in range(len(results)))
        text = (f"module attributes {{onnx.opsets = {{ai.onnx = 23 : i64}}}} {{\n"
                f"func.func @main({arguments}) -> ({named}) {{\n"
                f"{reads}  {values} = {self.text} : ({', '.join(types)}) -> ({', '.join(results)})\n"
                f"  return {values} : {', '.join(results)}\n}}\n")
        return re.sub(r"(?<=[<x])[A-Z](?=x)", "?", text) + params + "}\n"

    def inputs(self, values, rng):
        arrays = {}
        for name, type in self.operands.items():
            shape = [values.get(size) if size.isalpha() else int(size) for size in type[len("tensor<"):].split("x")[:-1]]
            if name == "blocks":  # different ones
                low, high = INTEGERS_OF[name]
                blocks = np.broadcast_to(np.arange(low, high + 1), (*shape[:-1], high + 1 - low))
                arrays[name] = np.ascontiguousarray(rng.permuted(blocks, axis=-1)[..., :shape[-1]])
            elif name in INTEGERS_OF:
                arrays[name] = rng.integers(*INTEGERS_OF[name], shape, endpoint=True)
            elif name == "thresholds":  # of random blocks of 16 keys and 32 queries, which have similarities of about 1/16 and 1/32
                arrays[name] = rng.uniform((0, 0.2, 0), (0.5, 1, 0.06), shape).astype(np.float32)
            else:
                arrays[name] = (SPREAD * rng.standard_normal(shape)).astype(np.float32)
        return arrays


def products():
    for rows, inner in ((1, 1), (33, 17), (64, 96)):
        operands = {"x": tensor("B", "S", inner), "w": tensor(rows, inner)}
        result = tensor("B", "S", rows)
        yield Case("hone.linear.f32", "hone.linear %x, %w", result, ROWS, **operands)
        yield Case("hone.linear.f32", "hone.linear %x, %w bias(%b)", result, ROWS, **operands, b=tensor(rows))
    yield Case("hone.matmul.f32", "hone.matmul %x, %w addend(%c)", tensor("B", "S", 33), ROWS, x=tensor("B", "S", 17), w=tensor(17, 33), c=tensor("B", "S", 33))
    for x, w in ((tensor("B", 3, "S", 8), tensor("B", 3, 8, 5)), (tensor("B", 1, "S", 8), tensor(3, 8, 5))):
        yield Case("hone.matmul.f32", "hone.matmul %x, %w", tensor("B", 3, "S", 5), ROWS, x=x, w=w)


def stored(array, element):
    return f'dense<"0x{array.tobytes().hex().upper()}"> : {tensor(*array.shape, element=element)}'


def affine(rng, rows, inner, bits, group, zeros=False, signed=False, transposed=False, half=False, activations=0, least=False, outliers=0):
    """A parameter with random planes of #hone.affine: its type and what it is stored as. With outliers, so many slots of them
    beside it, as #hone.dense_sparse."""
    groups = -(-inner // group) if group else 1
    columns = -(-(groups * group if group and not transposed else inner) * bits // 8)
    order = (lambda array: np.ascontiguousarray(array.T)) if transposed else (lambda array: array)
    scales = rng.uniform(0.5, 1.5, (rows, groups)) * SPREAD / 2 ** (bits - 2)
    if not half:
        scales[-1, -1] = 1e-5  # no normal f16, so that hone-narrow-scales keeps all of f32
    codes = rng.integers(0, 256, (rows, columns), dtype=np.uint8)
    middles = rng.integers(0, 256, (rows, -(-groups * bits // 8)), dtype=np.uint8) if zeros else None
    starts, slots = draw_outliers(rng, rows, inner, outliers) if outliers else ((), ())
    places = ((row, int(column)) for row in range(rows if outliers else 0) for column in slots[starts[row // 16]:starts[row // 16 + 1], row % 16])
    for row, column in places:  # codes there are the zero point
        set_code(codes, row, column, bits, get_code(middles, row, column // group if group else 0, bits) if zeros else 2 ** (bits - 1))
    planes = {"values": stored(order(codes), "i8"),
              "scales": stored(order(scales.astype(np.float16 if half else np.float32)), "f16" if half else "f32")}
    if zeros:
        planes["zeros"] = stored(order(middles), "i8")
    flags = {"bits": bits, "group": group, "scales": "f16" if half else "f32", "hasZeros": zeros, "isSigned": signed,
             "transposed": transposed, "activations": activations, "atLeast": least}
    encoding = f"#hone.affine<{', '.join(f'{name} = {str(value).lower()}' for name, value in flags.items())}>"
    return param(rng, rows, inner, encoding, planes, starts, slots)


def codebook(rng, rows, inner, bits, outliers=0):
    """The same of #hone.codebook."""
    numbers = (SPREAD * rng.standard_normal((rows, 2**bits))).astype(np.float32)
    planes = {"indices": stored(rng.integers(0, 256, (rows, -(-inner * bits // 8)), dtype=np.uint8), "i8"),
              "codebook": stored((numbers.view(np.uint32) >> 16).astype(np.uint16), "bf16")}
    return param(rng, rows, inner, f"#hone.codebook<bits = {bits}>", planes,
                 *(draw_outliers(rng, rows, inner, outliers) if outliers else ((), ())))


def param(rng, rows, inner, encoding, planes, starts, slots):
    """A parameter with planes of an encoding, and outliers in the slots, if there are any."""
    if len(slots):
        encoding = f"#hone.dense_sparse<of = {encoding}, outliers = {slots.size}>"
        planes["starts"] = stored(starts.astype(np.int32), "i32")
        planes["columns"] = stored(slots.astype(np.uint16), "i16")
        planes["outliers"] = stored((4 * SPREAD * rng.standard_normal(slots.shape)).astype(np.float16), "f16")
    return tensor(rows, inner, element=f"f32, {encoding}"), f"{{{', '.join(f'{k} = {v}' for k, v in planes.items())}}}"


def draw_outliers(rng, rows, inner, slots):
    """Where the slots of each panel of 16 rows begin, and the columns of each slot."""
    panels = -(-rows // 16)
    starts = np.concatenate([[0], np.sort(rng.integers(0, slots + 1, panels - 1)), [slots]]).astype(int)
    columns = [np.sort(np.array([rng.choice(inner, count, replace=False) for row in range(16)]).T, axis=0) for count in np.diff(starts)]
    return starts, np.concatenate([part.reshape(-1, 16) for part in columns])


def get_code(plane, row, column, bits):
    """Number `column` of a row of numbers of so many bits, which may lie in two bytes."""
    return sum((int(plane[row, bit // 8]) >> bit % 8 & 1) << i for i, bit in enumerate(range(column * bits, (column + 1) * bits)))


def set_code(plane, row, column, bits, code):
    for i, bit in enumerate(range(column * bits, (column + 1) * bits)):
        plane[row, bit // 8] = int(plane[row, bit // 8]) & ~(1 << bit % 8) & 255 | (code >> i & 1) << bit % 8


def packed_products():
    rng = np.random.default_rng(3)
    forms = [dict(bits=bits, group=group, zeros=zeros, half=half, activations=activations)
             for bits, group, (zeros, half), activations in itertools.product(
                 (2, 3, 4, 5, 6, 8), (0, 32, 64, 128), ((False, True), (True, False)), (0, 8))]
    forms += [dict(bits=8, group=group, signed=True, transposed=transposed, zeros=zeros)
              for group, transposed, zeros in itertools.product((0, 32), (False, True), (False, True))]
    for bits, group in itertools.product((2, 3, 4, 5, 6, 8), (32, 128)):
        yield Case(f"hone.packed_linear.u{bits}", "hone.linear %x, %w", tensor("B", "S", 40), ROWS, LEAST,
                   {"w": affine(rng, 40, 300, bits, group, activations=8, least=True)}, x=tensor("B", "S", 300))
    for bits, group, zeros, activations in ((2, 32, False, 8), (3, 64, False, 8), (3, 0, True, 0), (4, 32, False, 8), (4, 64, True, 0),
                                            (4, 0, False, 0), (5, 32, False, 8), (6, 64, True, 0), (8, 128, False, 8), (8, 64, False, 0), (8, 0, True, 0)):
        form = affine(rng, 40, 300, bits, group, zeros, activations=activations, least=activations > 0, outliers=10)
        yield Case(f"hone.packed_linear.outliers.u{bits}", "hone.linear %x, %w", tensor("B", "S", 40), ROWS, LEAST if activations else INTEGERS,
                   {"w": form}, x=tensor("B", "S", 300))
    for form, (rows, inner) in zip(forms, itertools.cycle(((33, 96), (64, 256), (5, 40), (16, 700)))):
        yield Case(f"hone.packed_linear.u{form['bits']}", "hone.linear %x, %w", tensor("B", "S", rows), ROWS, INTEGERS,
                   {"w": affine(rng, rows, inner, **form)}, x=tensor("B", "S", inner))
    for element, tolerance in (("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", BF16)):
        for transposed, (rows, inner) in itertools.product((False, True), ((33, 17), (64, 96))):
            weight = (SPREAD * rng.standard_normal((inner, rows) if transposed else (rows, inner))).astype(np.float32)
            weight = {"f32": weight, "f16": weight.astype(np.float16), "bf16": (weight.view(np.uint32) >> 16).astype(np.uint16)}[element]
            type = tensor(rows, inner, element=f"f32, #hone.stored<{element}{', transposed' if transposed else ''}>")
            yield Case(f"hone.packed_linear.{element}", "hone.linear %x, %w", tensor("B", "S", rows), ROWS, tolerance,
                       {"w": (type, stored(weight, element))}, x=tensor("B", "S", inner))


def keep_two_of_four(rng, rows, inner):
    """Which elements stay, and the plane of their indices as #hone.nm<2:4, …> has it."""
    kept = np.sort(rng.permuted(np.tile(np.arange(4), (rows, inner // 4, 1)), axis=2)[:, :, :2], axis=2)
    mask = np.zeros((rows, inner // 4, 4), bool)
    np.put_along_axis(mask, kept, True, axis=2)
    bits = kept.reshape(rows, -1).astype(np.uint8)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 4))).reshape(rows, -1, 4)
    return mask.reshape(rows, inner), (bits << np.arange(0, 8, 2, dtype=np.uint8)).sum(axis=2).astype(np.uint8)


def sparse_floats(rng, rows, inner, element):
    """A parameter of floats of which two of four inputs are kept, as `affine` gives one."""
    mask, indices = keep_two_of_four(rng, rows, inner)
    weight = (SPREAD * rng.standard_normal((rows, inner))).astype(np.float32)[mask].reshape(rows, -1)
    weight = {"f32": weight, "f16": weight.astype(np.float16), "bf16": (weight.view(np.uint32) >> 16).astype(np.uint16)}[element]
    planes = f"{{values = {stored(weight, element)}, indices = {stored(indices, 'i8')}}}"
    return tensor(rows, inner, element=f"f32, #hone.nm<2:4, of = {element}>"), planes


def sparse_codes(rng, rows, inner, bits, group, activations):
    """The same of integers."""
    _, indices = keep_two_of_four(rng, rows, inner)
    flags = dict(zeros=bits == 4 and group != 0, half=group == 32, activations=activations, least=activations != 0)
    type, planes = affine(rng, rows, inner, bits, group, **flags)
    kept = stored(rng.integers(0, 256, (rows, inner // 2 * bits // 8), dtype=np.uint8), "i8")
    planes = re.sub(r"values = dense<[^>]*> : tensor<[^>]*>", f"values = {kept}, indices = {stored(indices, 'i8')}", planes)
    return re.sub("#hone.affine<(.*?)>", r"#hone.nm<2:4, of = #hone.affine<\1>>", type), planes


def sparse_products():
    rng = np.random.default_rng(8)
    for (element, tolerance), (rows, inner) in itertools.product((("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", BF16)), ((33, 20), (64, 96))):
        yield Case(f"hone.sparse_linear.{element}", "hone.linear %x, %w", tensor("B", "S", rows), ROWS, tolerance,
                   {"w": sparse_floats(rng, rows, inner, element)}, x=tensor("B", "S", inner))
    for bits, group, activations in itertools.product((4, 8), (0, 32, 128), (0, 8)):
        yield Case(f"hone.sparse_linear.u{bits}", "hone.linear %x, %w", tensor("B", "S", 40), ROWS, LEAST if activations else INTEGERS,
                   {"w": sparse_codes(rng, 40, 300, bits, group, activations)}, x=tensor("B", "S", 300))


def packed_mlps():
    rng = np.random.default_rng(5)
    x, operands = tensor("B", "S", 64), ("g", "u", "d")
    for bits, activations in itertools.product((2, 3, 4, 5, 6, 8), (0, 8)):
        params = {name: affine(rng, *((64, 96) if name == "d" else (96, 64)), bits, 32, activations=activations) for name in operands}
        yield Case(f"hone.packed_linear.u{bits}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x, ROWS[:3], INTEGERS, params, x=x)
    params = {name: affine(rng, *((64, 96) if name == "d" else (96, 64)), 4, 32, outliers=7) for name in operands[1:]}
    yield Case("hone.packed_linear.outliers.u4", "hone.mlp gelu %x, up(%u), down(%d)", x, ROWS[:3], INTEGERS, params, x=x)


def packed_pairs():
    rng = np.random.default_rng(6)
    for (element, tolerance), width in itertools.product((("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", BF16)), (33, 96)):
        params = {}
        for name, shape in (("g", (width, 40)), ("u", (width, 40)), ("d", (40, width))):
            weight = (SPREAD * rng.standard_normal(shape)).astype(np.float32)
            weight = {"f32": weight, "f16": weight.astype(np.float16), "bf16": (weight.view(np.uint32) >> 16).astype(np.uint16)}[element]
            params[name] = (tensor(*shape, element=f"f32, #hone.stored<{element}>"), stored(weight, element))
        for name, size in (("a", width), ("b", width), ("c", 40)):
            params[name] = (tensor(size), stored(rng.standard_normal(size).astype(np.float32), "f32"))
        x = tensor("B", "S", 40)
        many = [*ROWS, {"B": 2, "S": 150}]
        yield Case(f"hone.packed_mlp.{element}", "hone.mlp gelu %x, up(%u, %b), down(%d, %c)", x, many, tolerance,
                   {name: params[name] for name in "udbc"}, x=x)
        # Two factors are rounded.
        yield Case(f"hone.packed_mlp.{element}", "hone.gated_mlp silu %x, gate(%g, %a), up(%u, %b), down(%d, %c)", x, many,
                   2 * tolerance, params, x=x)
    for bits, group, width in ((8, 0, 96), (8, 0, 31), (8, 128, 96), (4, 32, 96), (3, 64, 96), (2, 32, 96)):
        params = {name: affine(rng, *((64, width) if name == "d" else (width, 64)), bits, group, activations=8, least=True) for name in "gud"}
        x = tensor("B", "S", 64)
        yield Case(f"hone.packed_mlp.u{bits}", "hone.mlp silu %x, up(%u), down(%d)", x, [*ROWS, {"B": 2, "S": 150}], LEAST_OF_TWO,
                   {name: params[name] for name in "ud"}, x=x)
        yield Case(f"hone.packed_mlp.u{bits}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x, [*ROWS, {"B": 2, "S": 150}],
                   2 * LEAST_OF_TWO, params, x=x)
        if bits in (4, 3):
            for kind, factors in (("gated_mlp silu %x, gate(%g), ", 2), ("mlp gelu %x, ", 1)):
                # Each weight with as many outliers of its own.
                params = {name: affine(rng, *((64, width) if name == "d" else (width, 64)), bits, group, activations=8, least=True, outliers=number)
                          for name, number in (("g", 7), ("u", 3), ("d", 9)) if "gate" in kind or name != "g"}
                yield Case(f"hone.packed_mlp.outliers.u{bits}", f"hone.{kind}up(%u), down(%d)", x, [*ROWS, {"B": 2, "S": 150}],
                           factors * LEAST_OF_TWO, params, x=x)
    x = tensor("B", "S", 64)
    many = [*ROWS, {"B": 2, "S": 150}]
    for element, tolerance in (("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", BF16)):
        params = {name: sparse_floats(rng, *((64, 96) if name == "d" else (96, 64)), element) for name in "gud"}
        yield Case(f"hone.sparse_mlp.{element}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x, many, 2 * tolerance, params, x=x)
    for bits in (4, 8):
        params = {name: sparse_codes(rng, *((64, 96) if name == "d" else (96, 64)), bits, 32, 8) for name in "gud"}
        yield Case(f"hone.sparse_mlp.u{bits}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x, many, 2 * LEAST_OF_TWO, params, x=x)


def experts():
    rng = np.random.default_rng(9)
    count, x = 4, tensor("B", "S", 48)
    operands = {"x": x, "ids": tensor("B", "S", 2, element="i64"), "p": tensor("B", "S", 2)}
    text = "hone.moe silu %x, experts(%ids, %p), up(%u), down(%d)"
    for (element, tolerance), (fused, width) in itertools.product(
            (("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", BF16)), ((" fused halves", 32), (" fused alternate", 23), ("", 32))):
        params = {}
        for name, shape in (("u", (count * width * (2 if fused else 1), 48)), ("d", (count * 48, width))):
            weight = (SPREAD * rng.standard_normal(shape)).astype(np.float32)
            weight = {"f32": weight, "f16": weight.astype(np.float16), "bf16": (weight.view(np.uint32) >> 16).astype(np.uint16)}[element]
            params[name] = (tensor(*shape, element=f"f32, #hone.stored<{element}>"), stored(weight, element))
        yield Case(f"hone.expert_sum.{element}", text + fused, x, [*ROWS, {"B": 2, "S": 70}], tolerance, params, **operands)
    for bits, group, least, gate in ((8, 0, False, " fused halves"), (8, 32, True, ""), (4, 32, True, " fused alternate"),
                                     (4, 0, False, " gate(%g)"), (3, 32, False, " gate(%g)"), (2, 32, True, " fused halves")):
        rows = 40 * (2 if "fused" in gate else 1)
        params = {name: affine(rng, *((count * 48, 40) if name == "d" else (count * rows, 48)), bits, group,
                               activations=8 if least else 0, least=least) for name in ("udg" if "%g" in gate else "ud")}
        yield Case(f"hone.expert_sum.u{bits}", text + gate, x, [*ROWS, {"B": 2, "S": 70}], LEAST_OF_TWO if least else INTEGERS,
                   params, **operands)
    params = {"u": affine(rng, count * 40, 48, 4, 32), "d": affine(rng, count * 48, 40, 8, 0)}
    yield Case("hone.expert_sum.u8", text, x, ROWS, INTEGERS, params, **operands)
    many = [*ROWS, {"B": 2, "S": 70}]
    shapes = {"u": (count * 40, 48), "g": (count * 40, 48), "d": (count * 48, 40)}
    for names, gate in (("ud", ""), ("udg", " gate(%g)")):
        for element, tolerance in (("f32", TOLERANCE), ("f16", TOLERANCE), ("bf16", 2 * BF16)):
            yield Case(f"hone.sparse_expert_sum.{element}", text + gate, x, many, tolerance,
                       {name: sparse_floats(rng, *shapes[name], element) for name in names}, **operands)
        for bits, group, activations in ((8, 0, 0), (8, 32, 8), (4, 32, 8), (4, 0, 0)):
            yield Case(f"hone.sparse_expert_sum.u{bits}", text + gate, x, many, LEAST_OF_TWO if activations else INTEGERS,
                       {name: sparse_codes(rng, *shapes[name], bits, group, activations) for name in names}, **operands)
        for bits, group, least in ((8, 0, False), (4, 32, True), (3, 32, False), (2, 32, True)):
            # A gate has its own number of outliers.
            params = {name: affine(rng, *shapes[name], bits, group, activations=8 if least else 0, least=least, outliers=7 if name == "g" else 9)
                      for name in names}
            yield Case(f"hone.expert_sum.outliers.u{bits}", text + gate, x, many, LEAST_OF_TWO if least else INTEGERS, params, **operands)
        for bits in (2, 3, 4):
            yield Case(f"hone.expert_sum.outliers.codebook.u{bits}", text + gate, x, many, 4 * BF16,
                       {name: codebook(rng, *shapes[name], bits, outliers=7) for name in names}, **operands)


def codebooks():
    rng = np.random.default_rng(10)
    many, x = [*ROWS, {"B": 2, "S": 70}], tensor("B", "S", 48)
    for bits, (rows, inner) in itertools.product((2, 3, 4), ((33, 96), (5, 40), (16, 300))):
        yield Case(f"hone.packed_linear.codebook.u{bits}", "hone.linear %x, %w", tensor("B", "S", rows), many, BF16,
                   {"w": codebook(rng, rows, inner, bits)}, x=tensor("B", "S", inner))
    for bits in (2, 3, 4):
        # Sums of a number and an outlier are rounded to bf16 once more for large M.
        yield Case(f"hone.packed_linear.outliers.codebook.u{bits}", "hone.linear %x, %w", tensor("B", "S", 40), many, 2 * BF16,
                   {"w": codebook(rng, 40, 300, bits, outliers=10)}, x=tensor("B", "S", 300))
        params = {name: codebook(rng, *((48, 70) if name == "d" else (70, 48)), bits) for name in "gud"}
        yield Case(f"hone.packed_mlp.codebook.u{bits}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x,
                   [*ROWS, {"B": 2, "S": 150}], 4 * BF16, params, x=x)
        yield Case(f"hone.packed_mlp.codebook.u{bits}", "hone.mlp gelu %x, up(%u), down(%d)", x, [*ROWS, {"B": 2, "S": 150}], 2 * BF16,
                   {name: params[name] for name in "ud"}, x=x)
        params = {name: codebook(rng, *((48, 70) if name == "d" else (70, 48)), bits, outliers=number)
                  for name, number in (("g", 5), ("u", 3), ("d", 9))}
        yield Case(f"hone.packed_mlp.outliers.codebook.u{bits}", "hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)", x,
                   [*ROWS, {"B": 2, "S": 150}], 8 * BF16, params, x=x)
        for gate in ("", " gate(%g)"):
            params = {name: codebook(rng, 4 * (48 if name == "d" else 40), 40 if name == "d" else 48, bits) for name in ("udg" if gate else "ud")}
            yield Case(f"hone.expert_sum.codebook.u{bits}", f"hone.moe silu %x, experts(%ids, %p), up(%u), down(%d){gate}", x, many, 2 * BF16,
                       params, x=x, ids=tensor("B", "S", 2, element="i64"), p=tensor("B", "S", 2))


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
            text = text.replace("prefix_causal", "prefix_causal, %prefix")
            operands["prefix"] = tensor("B", element="i64")
        yield Case("hone.attention.f32", text, tensor("B", 4, "Q", 12), ATTENTION, **operands)
    yield from masked_attentions()


def masked_attentions():
    """Lists of blocks, trees and positions, with lse as the second result."""
    operands = {"q": tensor("B", 4, "Q", 20), "k": tensor("B", 2, "K", 20), "v": tensor("B", 2, "K", 12)}
    result = [tensor("B", 4, "Q", 12), tensor("B", 4, "Q")]
    for heads, (size, causal) in itertools.product((1, 2, 4), ((1, False), (16, True), (64, False))):
        blocks = f"#hone.blocks<size = {size}>"
        pattern = f"#hone.all_of<#hone.causal, {blocks}>" if causal else blocks
        yield Case("hone.attention.f32", f"hone.attention %q, %k, %v pattern({pattern}, %blocks) scale(0.3)", result, ATTENTION,
                   **operands, blocks=tensor("B", heads, "Q", 3, element="i64"))
    yield Case("hone.attention.f32", "hone.attention %q, %k, %v pattern(#hone.tree, %ancestors) scale(0.3)", result, ATTENTION,
               **operands, ancestors=tensor("B", "Q", 1, element="i64"))
    for pattern in ("#hone.full", "#hone.sliding<window = 20>"):
        yield Case("hone.attention.f32",
                   f"hone.attention %q, %k, %v pattern({pattern}) scale(0.3) alibi(%alibi) sinks(%sinks) key_positions(%positions)",
                   result, ATTENTION, **operands, alibi=tensor(4), sinks=tensor(4), positions=tensor("B", "K", element="i64"))


def attention_gradients():
    """Of rows that see some keys, all or none; numbers of queries that fill no block, and several blocks."""
    sizes = [{"B": b, "Q": q, "K": k} for b, q, k in ((1, 1, 1), (2, 5, 9), (3, 37, 131), (1, 70, 70), (2, 0, 5))]
    few = sizes[:2] # lse is random: distances of more keys would make probabilities e^40, whose sums cancel out
    most = {"bias": tensor("B", 4, "Q", "K"), "begin": tensor("B", element="i64"), "end": tensor("B", element="i64")}
    for pattern, heads, size in itertools.product(("full", "causal", "sliding<window = 3>"), (1, 2, 4), (16, 20)):
        q, k, v, rows = tensor("B", 4, "Q", size), tensor("B", heads, "K", size), tensor("B", heads, "K", 12), tensor("B", 4, "Q")
        operands = {"q": q, "k": k, "v": v, "lse": rows, "s": rows, "g": tensor("B", 4, "Q", 12)}
        text = f"hone.attention_gradient %q, %k, %v, %lse, %s, %g pattern(#hone.{pattern}) scale(0.3)"
        if size == 20:
            yield Case("hone.attention_gradient.f32", text + " alibi(%alibi)", [q, k, v], few, **operands, alibi=tensor(4))
            text += " softcap(5.0) bias(%bias) key_begin(%begin) key_end(%end)"
            operands |= most
        yield Case("hone.attention_gradient.f32", text, [q, k, v], sizes, **operands)
    q, k, v, rows = tensor("B", 4, "Q", 20), tensor("B", 2, "K", 20), tensor("B", 2, "K", 12), tensor("B", 4, "Q")
    operands = {"q": q, "k": k, "v": v, "lse": rows, "s": rows, "g": tensor("B", 4, "Q", 12)}
    text = "hone.attention_gradient %q, %k, %v, %lse, %s, %g "
    yield Case("hone.attention_gradient.f32", text + "pattern(#hone.blocks<size = 16>, %blocks) scale(0.3)", [q, k, v], sizes, **operands,
               blocks=tensor("B", 2, "Q", 3, element="i64"))
    yield Case("hone.attention_gradient.f32", text + "pattern(#hone.causal) scale(0.3) key_positions(%positions)", [q, k, v], sizes, **operands,
               positions=tensor("B", "K", element="i64"))


def selections():
    """Of the blocks from `first` to `last`, which is less than `first` for some queries."""
    sizes = [{"B": b, "Q": q, "K": k} for b, q, k in ((1, 1, 64), (2, 5, 70), (3, 37, 131), (1, 0, 64))]
    for heads, (size, places, batch) in itertools.product((1, 2, 4), ((8, 9, 1), (20, 3, "B"))):
        bounds = tensor(batch, "Q", element="i64")
        yield Case("hone.select_blocks.f32", "hone.select_blocks %q, %pooled from %first to %last size(8) scale(0.7)",
                   tensor("B", heads, "Q", places, element="i64"), sizes, q=tensor("B", 4, "Q", size),
                   pooled=tensor("B", heads, "K", -(-size // 8)), first=bounds, last=bounds)
        for scale in (0.7, -0.7):
            yield Case("hone.select_blocks.bounds.f32", f"hone.select_blocks %q, %pooled from %first to %last size(8) scale({scale}) bounds",
                       tensor("B", heads, "Q", places, element="i64"), sizes, q=tensor("B", 4, "Q", size),
                       pooled=tensor("B", heads, "K", -(-2 * size // 8)), first=bounds, last=bounds)


def antidiagonals():
    """Few queries and more than a block of them, with keys before them and groups that are not whole."""
    sizes = [{"B": b, "Q": q, "K": k, "L": -(-q // 32)} for b, q, k in ((1, 1, 64), (2, 64, 70), (2, 65, 65), (1, 70, 331), (1, 0, 64))]
    for heads, share, batch in itertools.product((1, 2, 4), (0.3, 1.0), (1, "B")):
        bounds = tensor(batch, "L", element="i64")
        yield Case("hone.select_antidiagonals.f32",
                   f"hone.select_antidiagonals %q, %k from %first to %last size(16) queries(32) stride(8) scale(0.7) share({share})",
                   tensor("B", heads, "L", "N", element="i64"), [size | {"N": -(-size["K"] // 16)} for size in sizes],
                   q=tensor("B", 4, "Q", 20), k=tensor("B", heads, "K", 20), first=bounds, last=bounds)
        yield Case("hone.select_antidiagonals.f32",
                   f"hone.select_antidiagonals %q, %k from %first to %last key_begin(%begin) size(16) queries(32) stride(8) scale(0.7) share({share})",
                   tensor("B", heads, "L", "N", element="i64"), [size | {"N": -(-size["K"] // 16)} for size in sizes],
                   q=tensor("B", 4, "Q", 20), k=tensor("B", heads, "K", 20), first=bounds, last=bounds, begin=tensor("B", element="i64"))


def means():
    """The same by mean queries and mean keys: with all blocks similar, with some, and with thresholds of each KV head."""
    sizes = [{"B": b, "Q": q, "K": k, "L": -(-q // 32), "N": -(-k // 16)} for b, q, k in ((1, 1, 64), (2, 64, 70), (2, 65, 65), (1, 70, 331), (1, 0, 64))]
    for heads, rows, batch, has_begin in itertools.product((1, 2, 4), (1, "all"), (1, "B"), (False, True)):
        bounds = tensor(batch, "L", element="i64")
        begin = {"begin": tensor("B", element="i64")} if has_begin else {}
        yield Case("hone.select_means.f32",
                   f"hone.select_means %q, %k by %thresholds from %first to %last {'key_begin(%begin) ' * has_begin}size(16) queries(32) scale(0.7)",
                   tensor("B", heads, "L", "N", element="i64"), sizes, q=tensor("B", 4, "Q", 20), k=tensor("B", heads, "K", 20),
                   thresholds=tensor(heads if rows == "all" else 1, 3), first=bounds, last=bounds, **begin)


def linear_attentions():
    """Up to a few tokens one by one, and chunks of 16, of which the last is not whole."""
    sizes = [{"B": b, "T": t} for b, t in ((1, 1), (2, 5), (1, 0), (2, 16), (1, 67))]
    for (keys, values), decays, betas, has_state in itertools.product(((16, 32), (20, 12)), (0, 1, "keys"), (0, 1, 2), (True, False)):
        heads = {"q": tensor("B", "T", 4, keys), "k": tensor("B", "T", 2, keys), "v": tensor("B", "T", 2, values)}
        text = "hone.linear_attention %q, %k, %v"
        if decays:
            heads["g"], text = tensor("B", "T", 2, keys if decays == "keys" else 1), text + " decay(%g)"
        if betas:
            heads["b"], text = tensor("B", "T", betas), text + " beta(%b)"
        if has_state:
            heads["s"], text = tensor("B", 2, keys, values), text + " state(%s)"
        yield Case("hone.linear_attention.f32", f"{text} scale(0.3)", [tensor("B", "T", 4, values), tensor("B", 2, keys, values)], sizes,
                   **heads)


def windows():
    """Convolutions with output channels as lanes, with positions as lanes and depthwise, and poolings, over one to three axes."""
    sizes = [{"B": b} for b in (1, 3, 0)]
    shapes = [((9,), (4,), (7,), (2,), (1,), (3,)), ((9, 13), (2, 3), (5, 6), (2, 2), (1, 2), (1, 1)), ((5, 4, 6), (3, 2, 2), (5, 4, 5), (1, 1, 1), (1, 1, 1), (1, 0, 0))]
    for x, kernel, y, strides, dilations, low in shapes:
        window = (f"kernel {list(kernel)} strides {list(strides)} dilations {list(dilations)} low {list(low)}")
        for groups, inputs, outputs in ((1, 3, 20), (1, 5, 3), (2, 4, 16), (6, 1, 3), (3, 2, 5)):
            columns = inputs * int(np.prod(kernel))
            given = {"x": tensor("B", groups * inputs, *x)}
            result = tensor("B", groups * outputs, *y)
            text = f"hone.convolution %x, %w {{}}{window} groups {groups}"
            for bias in ({}, {"b": tensor(groups * outputs)}):
                yield Case("hone.convolution.f32", text.format("bias(%b) " if bias else ""), result, sizes, **given,
                           w=tensor(groups * outputs, columns), **bias)
            if groups == 1 and outputs > 12 or outputs % 16 == 0 or inputs == 1 and groups * outputs > 12:
                values = np.random.default_rng(5).standard_normal((groups * outputs, columns)).astype(np.float32) * SPREAD
                params = {"w": (tensor(groups * outputs, columns), stored(values, "f32"))}
                yield Case("hone.packed_convolution.f32", text.format(""), result, sizes, params=params, **given)
        for kind in ("max", "sum"):
            yield Case("hone.pool.f32", f"hone.pool {kind} %x {window}", tensor("B", 20, *y), sizes, x=tensor("B", 20, *x))


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
                            "--rtol", case.tolerance, "--atol", case.tolerance])


def main():
    options = suite.parser(__doc__).parse_args()
    everything = itertools.chain(products(), packed_products(), norms(), ropes(), attentions(), attention_gradients(), selections(), antidiagonals(), means(), linear_attentions(), windows(), mlps(),
                                packed_mlps(), packed_pairs(), sparse_products(), experts(), codebooks())
    cases = [(case.name(), case) for case in everything]
    chosen = [(name, case) for name, case in cases if options.only in name]
    return suite.run_all(chosen, lambda case: check(case, options.build / "bin"), options.jobs)


sys.exit(main())
