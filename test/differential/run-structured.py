# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Smaller models against onnxruntime: a model without units gives what the whole one gives where these units are masked.

Hone removes channels, heads or layers by magnitude or influence, which changes no weight that stays. In the ONNX file of the same
model the inputs that are gone are made 0 in the products after them. Both models are called as the file has them, with keys and
values of the heads and layers that stay, and through @forward. Exported, the smaller model is a file that gives the same.
"""

import functools
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

import runtime
import sessions
import suite

TOLERANCE = 1e-4  # as in run-models.py
SPARSITY, SPARSITY_OF_LAYERS = "20%", "40%"  # one of two layers is about 40 % of these models
PARTS = ["channels", "heads", "channels,heads", "layers"]
MODELS = ["llama.dynamo23/model", "gpt2.optimum/model", "qwen2.genai/model"]
LAYERS_OF = ["gemma2.genai/model"]  # whose layers go, besides
# Files whose attention is the nodes that exporters write for it, Attention, or GroupQueryAttention.
HEADS_OF = ["bert.dynamo23", "bert.optimum", "gpt2.optimum", "llama.dynamo23", "llama.optimum", "llama.transformers-ort",
            "mistral.transformers-ort", "phi3.optimum", "qwen2.genai", "qwen3_moe.optimum", "vit.optimum"]
NODES = [("MultiHeadAttention", {"num_heads": 4}), ("Attention", {"q_num_heads": 4, "kv_num_heads": 4}),
         ("Attention", {"q_num_heads": 8, "kv_num_heads": 4})]
KEPT = re.compile(r'hone\.param @"?([^ "]+)"? .*hone\.inputs = \{kept = array<i64: ([0-9, ]*)>')
READ = re.compile(r'hone\.get_param @"?([^ "]+)"? ')
JOINED = re.compile(r'hone\.joined = \[([^\]]*)\]')  # the file's names of what one parameter is
CALIBRATION_TOKENS = 512


def products(graph):
    """Nodes that multiply with a matrix, by the matrix, and the dimension of its inputs."""
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm") and len(node.input) > 1:
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            yield node.input[1], int(transposed)


class Smaller:
    """What Hone leaves of a model, and the same model with what is gone masked."""

    def __init__(self, path, parts, tools, folder):
        self.model, self.folder = onnx.load(path), folder
        sparsity = SPARSITY_OF_LAYERS if parts == "layers" else SPARSITY
        self.flags = ["--prune=structured", f"--sparsity={sparsity}", f"--prune-parts={parts}"]
        if parts == "layers":
            np.save(folder / "tokens.npy", np.random.default_rng(1).integers(0, 200, CALIBRATION_TOKENS, dtype=np.int32))
            suite.run_tool([tools / "hone", "calibrate", path, "--tokens", folder / "tokens.npy", "--window", 32,
                            "-o", folder / "statistics.safetensors"])
            self.flags.append(f"--calibration={folder / 'statistics.safetensors'}")
        suite.run_tool([tools / "hone", "compile", path, *self.flags, "--stop-after=rewrite", "-o", folder / "smaller.mlir"])
        text = (folder / "smaller.mlir").read_text()
        self.kept = {name: [int(k) for k in kept.split(",")] for name, kept in KEPT.findall(text)}
        self.read = set(READ.findall(text)) | {name for names in JOINED.findall(text) for name in re.findall(r'"([^"]*)"', names)}
        self.artefact = folder / "smaller.hone"
        suite.run_tool([tools / "hone", "compile", path, *self.flags, "-o", self.artefact])

    def mask(self):
        """A file of the whole model whose products do not see what is gone; how many weights that changed."""
        inputs, changed = dict(products(self.model.graph)), 0
        for tensor in self.model.graph.initializer:
            if tensor.name not in inputs or (tensor.name in self.read and tensor.name not in self.kept):
                continue
            weight = onnx.numpy_helper.to_array(tensor).copy()
            gone = np.ones(weight.shape[inputs[tensor.name]], bool)
            gone[self.kept.get(tensor.name, [])] = False
            weight[(slice(None), gone) if inputs[tensor.name] else gone] = 0
            tensor.CopyFrom(onnx.numpy_helper.from_array(weight, tensor.name))
            changed += 1
        onnx.save(self.model, self.folder / "masked.onnx")
        return changed


def head_kept(kept, array, width):
    """The KV heads of `array`, [B, H, S, D], that `kept` of the `width` inputs of the product after it belong to."""
    shared = width // array.shape[1]
    return sorted({k // shared for k in kept})


def masked_cases(smaller, path, parts, names):
    """The stored inputs and what onnxruntime makes of them with the masked model, of heads and layers that stay."""
    session = onnxruntime.InferenceSession(str(smaller.folder / "masked.onnx"), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    weights = [(name, axis) for name, axis in products(smaller.model.graph) if name in smaller.kept]
    sizes = {tensor.name: tensor.dims for tensor in smaller.model.graph.initializer}
    arrays = {}
    for label, case in suite.stored_cases(path).items():
        got = dict(zip(outputs, session.run(None, case["in"])))
        for direction, tensors in (("in", case["in"]), ("out", got)):
            for name, array in tensors.items():
                layer = re.search(r"(?:past|present)\D*(\d+)", name)
                if layer and parts == "heads" and array.ndim == 4:
                    weight, axis = weights[int(layer[1])]
                    array = array[:, head_kept(smaller.kept[weight], array, sizes[weight][axis])]
                if parts != "layers" or name in names[direction]:
                    arrays[f"{label}/{direction}/{name}"] = array.copy()
    suite.clear_rows_not_held(arrays, suite.windowed_caches(path))
    return arrays


def check_exported(path, flags, arrays, tools, folder):
    """The smaller model as a file: onnxruntime's answers are those of the masked one, and Hone's weights those that it has
    without the way through a file."""
    suite.run_tool([tools / "hone", "export", path, *flags, "-o", folder / "exported.onnx", "--quiet"])
    onnx.shape_inference.infer_shapes_path(folder / "exported.onnx", folder / "inferred.onnx", strict_mode=True, data_prop=True)
    session = onnxruntime.InferenceSession(str(folder / "exported.onnx"), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    for label in sorted({key.split("/")[0] for key in arrays}):
        inputs = {key: array for key, array in arrays.items() if key.startswith(f"{label}/in/")}
        got = session.run(None, {key.split("/", 2)[2]: array for key, array in inputs.items()})
        answers = inputs | {f"{label}/out/{name}": array for name, array in zip(outputs, got)}
        suite.clear_rows_not_held(answers, suite.windowed_caches(folder / "exported.onnx"))
        for name in outputs:
            array, wanted = answers[f"{label}/out/{name}"], arrays[f"{label}/out/{name}"]
            if array.shape != wanted.shape or not np.allclose(array, wanted, TOLERANCE, TOLERANCE):
                raise suite.Failure(f"{label}: '{name}' of the exported model differs from that of the masked one")
    suite.run_tool([tools / "hone", "compile", folder / "exported.onnx", "-o", folder / "exported.hone"])
    suite.run_tool([tools / "hone-run", "run", folder / "exported.hone", "--cases", folder / "masked.npz",
                    "--rtol", TOLERANCE, "--atol", TOLERANCE])


def check(path, parts, build):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        smaller = Smaller(path, parts, build / "bin", folder)
        if not smaller.mask():
            raise suite.Failure("nothing is gone")
        library = build / "lib" / "libhone_rt.so"
        module = runtime.Module(library, smaller.artefact)
        names = {"in": module.names("main", runtime.INPUT), "out": module.names("main", runtime.OUTPUT)}
        module.close()
        arrays = masked_cases(smaller, path, parts, names)
        np.savez(folder / "masked.npz", **arrays)
        sessions.check(folder / "masked.onnx", smaller.artefact, library)
        if "," not in parts:
            suite.run_tool([build / "bin" / "hone-run", "run", smaller.artefact, "--cases", folder / "masked.npz",
                            "--rtol", TOLERANCE, "--atol", TOLERANCE])
        if parts in ("channels", "layers"):
            check_exported(path, smaller.flags, arrays, build / "bin", folder)


def write_attention(folder, node, **attributes):
    """A file with a block of attention, by a node of this type on rows of all heads, and its answers."""
    rng, width, shared = np.random.default_rng(3), 64, 64 * attributes.get("kv_num_heads", 1) // attributes.get("q_num_heads", 1)
    shapes = {"q": (width, width), "k": (width, shared), "v": (width, shared), "o": (width, width), "bias": (3 * width,)}
    weights = [onnx.numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), name) for name, shape in shapes.items()]
    is_microsoft = node == "MultiHeadAttention"
    nodes = [onnx.helper.make_node("MatMul", ["x", name], [f"rows of {name}"]) for name in "qkv"]
    nodes += [onnx.helper.make_node(node, [f"rows of {name}" for name in "qkv"] + ["bias"] * is_microsoft, ["attended"],
                                    domain="com.microsoft" * is_microsoft, **attributes),
              onnx.helper.make_node("MatMul", ["attended", "o"], ["y"])]
    infos = [[onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["b", "s", width])] for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "attention", *infos, weights[:5 if is_microsoft else 4])
    opsets = [onnx.helper.make_opsetid("", 23), onnx.helper.make_opsetid("com.microsoft", 1)]
    path = folder / "attention.onnx"
    onnx.save(onnx.helper.make_model(graph, ir_version=10, opset_imports=opsets), path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    arrays = {}
    for case, shape in enumerate([(1, 5, width), (2, 9, width)]):
        x = rng.standard_normal(shape).astype(np.float32)
        arrays |= {f"case{case}/in/x": x, f"case{case}/out/y": session.run(["y"], {"x": x})[0]}
    np.savez(path.with_suffix(".npz"), **arrays)
    return path


def check_node(node, attributes, build):
    with tempfile.TemporaryDirectory() as name:
        check_heads(write_attention(pathlib.Path(name), node, **attributes), build)


def check_heads(path, build):
    """A file without some of its heads."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        smaller = Smaller(path, "heads", build / "bin", folder)
        if not smaller.mask():
            raise suite.Failure("nothing is gone")
        arrays = masked_cases(smaller, path, "heads", {})
        np.savez(folder / "masked.npz", **arrays)
        check_exported(path, smaller.flags, arrays, build / "bin", folder)


def cases():
    models = suite.models()
    for model in MODELS:
        for parts in PARTS:
            # What is left of a layer whose products are masked are their biases.
            if parts != "layers" or not model.startswith("gpt2"):
                yield f"{model} without {parts}", functools.partial(check, models[model], parts)
    for model in HEADS_OF:
        if f"{model}/model" in models:
            yield f"{model} exported without heads", functools.partial(check_heads, models[f"{model}/model"])
    for node, attributes in NODES:
        yield f"{node} of {attributes} exported without heads", functools.partial(check_node, node, attributes)
    for model in LAYERS_OF:
        yield f"{model} without layers", functools.partial(check, models[model], "layers")


def main():
    options = suite.parser(__doc__).parse_args()
    chosen = [(name, case) for name, case in cases() if options.only in name]
    return suite.run_all(chosen, lambda case: case(options.build), options.jobs)


sys.exit(main())
