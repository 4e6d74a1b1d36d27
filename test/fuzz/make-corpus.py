# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make-corpus.py FOLDER: writes the valid files that fuzzing starts from, one folder a target. What fuzzing found since
lies beside them in corpus/ under names that libFuzzer gave."""

import base64
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def npy(array, fortran=False):
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(array) if fortran else array)
    return buffer.getvalue()


def npz(save, **arrays):
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


def safetensors(tensors, metadata=None, alignment=8):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % alignment)
    return struct.pack("<Q", len(text)) + text + data


def manifest():
    tensor = {"name": "x", "dtype": "f32", "shape": ["batch", 4]}
    state = {"name": "k", "dtype": "f16", "shape": ["batch", 2, 0, 8], "append_axis": 2}
    return json.dumps({
        "schema": "hone-artefact", "version": 3, "hone": "0.1.0", "target": "cpu",
        "cpu": {"name": "x86-64-v3", "features": ["avx2"]},
        "files": {"program.so": {"bytes": 10}},
        "states": [{"name": "kv", "slots": [state]}],
        "entries": [{"name": "main", "inputs": [tensor], "outputs": [tensor]},
                    {"name": "forward", "inputs": [tensor], "outputs": [tensor], "state": "kv"}],
        "kernels": ["linear_f32_dense_avx2"], "source": {"name": "m.onnx"}, "tokenizer": "tokenizer.json",
        "generation": {"eos": [0, 2], "bos": None},
    }).encode()


def artefacts():
    """Each a manifest, a NUL and weights, for the program of artefact_program.c."""
    def tensor(name, size):
        return {"name": name, "dtype": "f32", "shape": ["batch", size]}

    document = {
        "schema": "hone-artefact", "version": 3, "hone": "0.1.0", "target": "cpu", "cpu": {"name": "x86-64", "features": ["sse2"]},
        "files": {"program.so": {"bytes": 1, "crc32": 1}, "weights.safetensors": {"bytes": 1}},
        "entries": [{"name": "main", "inputs": [tensor("x", 8)], "outputs": [tensor("y", 32)]}], "kernels": [],
    }
    starts, columns = np.array([0, 1, 4], "<i4"), (np.arange(64) % 8).astype("<u2")
    values = np.ones(64, "<f4").tobytes()

    def pack(document, starts, columns):
        tensors = {"w.starts": ("I32", [3], starts.tobytes()), "__padding__.1": ("U8", [52], bytes(52)),
                   "w.columns": ("U16", [4, 16], columns.tobytes()), "w.outliers": ("F32", [4, 16], values)}
        return json.dumps(document).encode() + b"\0" + safetensors(tensors, {"type of w": "tensor<32x8xf32>"}, alignment=64)

    yield "whole", pack(document, starts, columns)
    yield "starts", pack(document, np.array([0, 2**30, 4], "<i4"), columns)
    yield "negative", pack(document, np.array([0, -(2**31), 4], "<i4"), columns)
    yield "columns", pack(document, starts, np.full(64, 0xFFFF, "<u2"))
    yield "ranks", pack({**document, "ranks": 2}, starts, columns)
    entry = document["entries"][0]
    for name, change in {"dtype": {"outputs": [{**tensor("y", 32), "dtype": "u8"}]}, "inputs": {"inputs": []},
                         "shape": {"inputs": [tensor("x", 1)]}}.items():
        yield name, pack({**document, "entries": [{**entry, **change}]}, starts, columns)


def statistics():
    """What `hone calibrate` writes of one input of two numbers."""
    moment, rows, cost = np.eye(2, dtype="<f4").tobytes(), np.int64(3).tobytes(), np.float32(0.5).tobytes()
    tensors = {"0.second_moment": ("F32", [2, 2], moment), "0.absmax": ("F32", [2], bytes(8)), "0.rows": ("I64", [], rows),
               "cost of w": ("F32", [], cost)}
    return safetensors(tensors, {"format": "hone-statistics", "version": "1", "tokens": "3", "model": "0" * 32, "input of w": "0"})


def corpus(*texts, block=64):
    """As docs/corpora.md describes the file."""
    vocabulary = 1 + max(max(text) for text in texts)
    tokens = [token for text in texts for token in (vocabulary, *text)]
    symbols = [0 if token == vocabulary else token + 1 for token in reversed(tokens)]
    size = len(symbols)
    order = sorted(range(size), key=lambda begin: symbols[begin:])
    rank = {begin: i for i, begin in enumerate(order)} | {size: 0}

    def shared(one, other):
        length = 0
        while max(one, other) + length < size and symbols[one + length] == symbols[other + length] != 0:
            length += 1
        return length

    lengths = [shared(order[i - 1], order[i]) if i else 0 for i in range(size)]
    minima = [[min(lengths[i:i + block]) for i in range(0, size, block)]]
    while len(minima[-1]) > 1:
        minima.append([min(minima[-1][i:i + block]) for i in range(0, len(minima[-1]), block)])
    longs = [length for length in lengths if length >= 255]
    starts = [sum(length >= 255 for length in lengths[:i]) for i in range(0, size, block)]
    buckets = [sum(symbol < i for symbol in symbols) for i in range(vocabulary + 2)]
    width = "u2" if vocabulary < 2**16 else "u4"
    arrays = [(buckets, "u4"), (tokens, width), ([rank[begin + 1] for begin in order], "u4"), ([size - begin for begin in order], "u4"),
              ([min(length, 255) for length in lengths], "u1"), (starts, "u4"), *((level, "u4") for level in minima), (longs, "u4")]
    body = b""
    for array, kind in arrays:
        body += bytes(-len(body) % 64) + np.array(array, "<" + kind).tobytes()
    header = struct.pack("<8sIIQQQQQI", b"HONECORP", 1, int(width[1]), 0, vocabulary, size, len(texts), len(longs), zlib.crc32(body))
    return header + struct.pack("<I", zlib.crc32(header)) + body


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), functions=(), opset=18):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in initializers])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9).SerializeToString()


def branches():
    def graph(operator):
        return helper.make_graph([helper.make_node(operator, ["x"], ["r"])], operator, [], [value("r", ["n"])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph("Relu"), else_branch=graph("Neg"))
    return model([node], [value("c", [], TensorProto.BOOL), value("x", ["n"])], [value("y", ["n"])])


def loop():
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["a", "a"], ["b"])], "body",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("a", [2])],
        [value("d", [], TensorProto.BOOL), value("b", [2])])
    return model([helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)],
                 [value("m", [], TensorProto.INT64), value("x", [2])], [value("y", [2])])


def function():
    twice = helper.make_function("f", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 18)])
    return model([helper.make_node("Twice", ["x"], ["y"], domain="f")], [value("x", ["n"])], [value("y", ["n"])],
                 functions=[twice])


def external():
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "w.bin"), ("offset", "0"), ("length", "8")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, text
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", [2])], [value("y", [2])],
                              [weight])
    return helper.make_model(graph, ir_version=9).SerializeToString()


def onnx_models():
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield "dense", model([helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"),
                          helper.make_node("Softmax", ["h"], ["y"], axis=-1)],
                         [value("x", ["batch", 2])], [value("y", ["batch", 3])], [("w", weight)])
    yield "reshape", model([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"])],
                           [value("x", ["a", "b"])], [value("y", None)])
    yield "types", model([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.BFLOAT16)],
                         [], [value("y", [3], TensorProto.BFLOAT16)], [("w", np.array([1, -1, 0], np.int8))])
    yield "norm", model([helper.make_node("SkipSimplifiedLayerNormalization", ["x", "x", "w"], ["y"],
                                          domain="com.microsoft", epsilon=1e-6)],
                        [value("x", ["b", "s", 3])], [value("y", ["b", "s", 3])], [("w", weight[0])])
    yield "attention", model([helper.make_node("Attention", ["x", "x", "x"], ["y"], is_causal=1, q_num_heads=2,
                                               kv_num_heads=2)],
                             [value("x", ["b", "s", 8])], [value("y", ["b", "s", 8])], opset=23)
    yield "if", branches()
    yield "loop", loop()
    yield "function", function()
    yield "external", external()


def tokenizers():
    """Each a tokenizer.json, a NUL and a text."""
    def bpe(tokens, merges, **fields):
        return {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges, **fields}

    def stages(kind, *parts):
        return {"type": "Sequence", kind: list(parts)}

    def added(content, **fields):
        return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": False, **fields}

    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    letters = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}&&[^\p{Han}]]+|\s+(?!\S)|\s+"
    split = {"type": "Split", "pattern": {"Regex": letters}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}
    yield "byte-level", {
        "model": bpe(["a", "b", "ab", "Ġ", "Ġab", "Ã", "©"], ["a b", "Ġ ab"], ignore_merges=True),
        "added_tokens": [added("<s>", special=True, lstrip=True), added("Word", single_word=True, normalized=True)],
        "normalizer": {"type": "NFC"}, "pre_tokenizer": stages("pretokenizers", split, byte_level),
        "decoder": {"type": "ByteLevel"},
        "post_processor": {"type": "TemplateProcessing", "special_tokens": {"x": {"id": "x", "ids": [1], "tokens": ["b"]}},
                           "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]},
    }, "ab é<s>Word 123 漢"
    yield "sentence-piece", {
        "model": bpe(["<unk>", "▁", "a", "▁a", "<0xC3>", "<0xA9>"], [["▁", "a"]], byte_fallback=True, fuse_unk=True,
                     unk_token="<unk>"),
        "normalizer": stages("normalizers", {"type": "Prepend", "prepend": "▁"}, replace),
        "decoder": stages("decoders", {**replace, "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                          {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
    }, "a aéxy" + " a" * 60
    yield "metaspace", {
        "model": bpe(["▁", "a", "##a", "a</w>"], [], continuing_subword_prefix="##", end_of_word_suffix="</w>"),
        "normalizer": stages("normalizers", {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Nmt"},
                             {"type": "StripAccents"}, {"type": "Lowercase"}),
        "pre_tokenizer": stages("pretokenizers", {"type": "Digits", "individual_digits": True},
                                {"type": "Punctuation", "behavior": "MergedWithNext"},
                                {"type": "FixedLength", "length": 9},
                                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}),
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    }, " aa a, A1 aA"
    units = [0x60 << 10, 3 << 10 | 1 << 8 | ord("a"), 1 << 31]  # a double array that maps "a" to the text at 0
    table = base64.b64encode(struct.pack("<4I", 12, *units) + b"b\0").decode()
    yield "unigram", {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["▁ab", -4.5]]},
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": table},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    }, "ab aab \u00e9e\u0301a"
    yield "word-piece", {
        "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]",
                  "continuing_subword_prefix": "##", "max_input_chars_per_word": 10},
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "post_processor": {"type": "BertProcessing", "sep": ["a", 1], "cls": ["a", 1]},
    }, "Ab áb 漢! a"


def inputs(**changes):
    """What test/fuzz/inputs.cpp takes, and with changes of it what it refuses."""
    arrays = {"tokens": np.array([[1, 2, -8], [7, 0, 3]]), "mask": np.ones((2, 5), bool),
              "x": np.arange(18, dtype=np.uint16).reshape(2, 3, 3), "scale": np.float32(0.5)}
    return {name: array for name, array in {**arrays, **changes}.items() if array is not None}


def modules():
    """Text of MLIR: what the compiler writes after a phase, each form that its parser is guarded against, and what ends early."""
    main = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {0} return %x : tensor<4xf32> }}\n"
    yield "function", main.format("")
    yield "parameter", ("hone.param @w : tensor<2x2xf32, #hone.stored<f16>> = dense<1.0> : tensor<2x2xf16>\n"
                        "hone.param @v : tensor<2xf32> = #hone.external<\"w.bin\", 0, 8>\n" + main.format(""))
    yield "onnx", main.format('%y = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    yield "affine", "#map = affine_map<(d0, d1)[s0] -> (d0 * 2 + d1 floordiv 3 - s0, d1 mod 7)>\n" + main.format("")
    yield "aliases", "!a = tensor<2x?xf32>\n#b = [1 : i32, {c = !a}]\nmodule attributes {tensor.t = #b} {}\n"
    yield "llvm", "llvm.func @f(%x: !llvm.ptr) { llvm.return }\n"
    yield "resource", ("module attributes {tensor.t = dense_resource<w> : tensor<1xf32>} {}\n"
                       '{-# dialect_resources: {builtin: {w: "0x040000000000803F"}} #-}\n')
    yield "locations", 'module {} loc(callsite("a"("f.onnx":0:0) at fused<"b">["c", unknown]))\n'
    yield "types", "module attributes {tensor.t = (tuple<complex<f32>, vector<[4]x2xi1>>, memref<*xf32, 1>) -> ()} {}\n"
    deep = 300
    for name, text in {"tuples": "tuple<" * deep + "i1" + ">" * deep, "arrays": "[" * deep + "]" * deep,
                       "dictionaries": "{a=" * deep + "1" + "}" * deep, "ranks": "tensor<" + "1x" * deep + "f32>",
                       "sum": "affine_map<(d0) -> (d0" + " + d0" * deep + ")>",
                       "functions": "() -> (" * deep + ")" * deep}.items():
        yield f"deep-{name}", f"module attributes {{tensor.t = {text}}} {{}}\n"
    yield "deep-aliases", "!a0 = i1\n" + "".join(f"!a{i + 1} = tuple<!a{i}, !a{i}>\n" for i in range(40)) + "module {}\n"
    yield "deep-modules", "module {" * deep + "}" * deep
    yield "open-string", 'module attributes {tensor.t = "'


def seeds():
    f32 = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield "inputs/all", npz(np.savez, **inputs())
    yield "inputs/deflated", npz(np.savez_compressed, **inputs())
    yield "inputs/missing", npz(np.savez, **inputs(mask=None))
    yield "inputs/rows", npz(np.savez, **inputs(tokens=np.full((2, 3), 8)))
    yield "inputs/symbol", npz(np.savez, **inputs(mask=np.ones((3, 5), bool)))
    yield "inputs/empty", npz(np.savez, **inputs(tokens=np.zeros((0, 2), int), mask=np.ones((0, 0), bool),
                                                 x=np.zeros((0, 2, 3), np.uint16)))
    yield from ((f"artefact/{name}", content) for name, content in artefacts())
    yield "corpus/two", corpus([1, 2, 3, 1, 2], [2, 3, 3])
    yield "corpus/long", corpus([1] * 300, [0, 1] * 150)
    yield "manifest/full", manifest()
    yield "npy/f32", npy(f32)
    yield "npy/f16-fortran", npy(f32.astype(np.float16), fortran=True)
    yield "npy/i64-scalar", npy(np.int64(7))
    yield "npy/empty", npy(np.zeros((0, 5), np.uint8))
    yield "npy/complex", npy(f32.astype(np.complex64))
    yield "npz/stored", npz(np.savez, x=f32, y=np.array([True, False]))
    yield "npz/deflated", npz(np.savez_compressed, x=np.zeros((4, 64), np.int32))
    yield from ((f"onnx/{name}", content) for name, content in onnx_models())
    yield from ((f"mlir/{name}", text.encode()) for name, text in modules())
    yield "text/source", "def f(x):\n    return 'é😀'  # 1234".encode()
    yield "text/special", "<|file|>日本語<|pad|>".encode()
    yield "safetensors/two", safetensors(
        {"a": ("F32", [2, 2], bytes(16)), "b": ("BF16", [3], bytes(6))}, {"format": "pt"})
    yield "safetensors/none", safetensors({})
    yield "statistics/one", statistics()
    for name, document, text in tokenizers():
        yield f"tokenizer/{name}", json.dumps(document, ensure_ascii=False).encode() + b"\0" + text.encode()


for name, content in seeds():
    path = pathlib.Path(sys.argv[1]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
