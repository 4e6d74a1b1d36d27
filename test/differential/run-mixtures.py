# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Language models with experts, calibrated and compressed.

The model is the Qwen2 of test/models with a router and com.microsoft.MoE in place of each feed-forward block. What was measured of each
expert is that of the rows which onnxruntime routes to it; one expert gets none. Pruned, the model gives what onnxruntime makes of a
file with the same elements masked; with integers and outliers it loses little, and the same options give the same bytes.
"""

import functools
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import stored_tensors
import suite

SOURCE = "qwen2.genai/model"
EXPERTS, CHOSEN, WIDTH, HIDDEN, LAYERS, UNUSED = 4, 2, 64, 96, 2, 3
WINDOW, WINDOWS, VOCABULARY = 32, 8, 256
TOLERANCE = 2e-4  # as in run-calibrate.py
ANSWERS = 1e-4    # as in run-models.py


def block(layer):
    return f"/model/layers.{layer}/mlp/"


def expert_nodes(layer, x, y):
    """A router that never chooses the last expert, and the experts."""
    name = f"layers.{layer}"
    nodes = [helper.make_node("Reshape", [x, "flat"], [f"{name}.rows"]),
             helper.make_node("MatMul", [f"{name}.rows", f"{name}.router"], [f"{name}.scores"]),
             helper.make_node("Add", [f"{name}.scores", "never"], [f"{name}.logits"]),
             helper.make_node("MoE", [x, f"{name}.logits", f"{name}.fc1", "", f"{name}.fc2"], [y], domain="com.microsoft", k=CHOSEN,
                              activation_type="silu", normalize_routing_weights=1)]
    for i, node in enumerate(nodes):
        node.name = f"{block(layer)}experts/{i}"
    return nodes


def make_model():
    model = onnx.load(suite.models()[SOURCE])
    rng, graph = np.random.default_rng(4), model.graph
    draw = lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    constants = {"flat": np.array([-1, WIDTH]), "never": np.array([0.0] * (EXPERTS - 1) + [-1e4], np.float32)}
    nodes = []
    for node in graph.node:
        layer = next((i for i in range(LAYERS) if node.name.startswith(block(i))), None)
        if layer is None:
            nodes.append(node)
        elif node.name.endswith("down_proj/MatMul"):
            nodes += expert_nodes(layer, f"/model/layers.{layer}/post_attention_layernorm/output_0", node.output[0])
            constants |= {f"layers.{layer}.router": draw(WIDTH, EXPERTS), f"layers.{layer}.fc1": draw(EXPERTS, HIDDEN, WIDTH),
                          f"layers.{layer}.fc2": draw(EXPERTS, WIDTH, HIDDEN)}
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [tensor for tensor in graph.initializer if ".mlp." not in tensor.name]
    del graph.initializer[:]
    graph.initializer.extend(kept + [numpy_helper.from_array(array, name) for name, array in constants.items()])
    return model


def open_session(model, shown=()):
    shown_model = onnx.ModelProto()
    shown_model.CopyFrom(model)
    shown_model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in shown)
    return onnxruntime.InferenceSession(shown_model.SerializeToString(), providers=["CPUExecutionProvider"])


def feeds(session, ids):
    inputs = {"input_ids": ids[None].astype(np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
    for i in session.get_inputs():
        if i.name not in inputs:
            inputs[i.name] = np.zeros((1, i.shape[1], 0, 16), np.float32)
    return inputs


def tokens():
    return np.random.default_rng(5).integers(0, VOCABULARY, WINDOW * WINDOWS).astype(np.int32)


def calibrate(tools, folder):
    onnx.save(make_model(), folder / "model.onnx")
    np.save(folder / "tokens.npy", tokens())
    suite.run_tool([tools / "hone", "calibrate", folder / "model.onnx", "--tokens", folder / "tokens.npy", "--window", WINDOW,
                    "-o", folder / "s.safetensors"])


def expected_rows():
    """The rows of fc1 and fc2 of each expert of each layer, in f64."""
    names = [name for i in range(LAYERS) for name in (f"layers.{i}.rows", f"layers.{i}.logits")]
    session = open_session(make_model(), names)
    shown = [session.run(names, feeds(session, window)) for window in tokens().reshape(-1, WINDOW)]
    arrays = {name: np.concatenate([part[i] for part in shown]) for i, name in enumerate(names)}
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in make_model().graph.initializer}
    for layer in range(LAYERS):
        chosen = np.argsort(-arrays[f"layers.{layer}.logits"], axis=1)[:, :CHOSEN]
        for expert in range(EXPERTS):
            rows = arrays[f"layers.{layer}.rows"][(chosen == expert).any(axis=1)].astype(np.float64)
            hidden = rows @ weights[f"layers.{layer}.fc1"][expert].T.astype(np.float64)
            yield f"layers.{layer}.fc1[{expert}]", rows
            yield f"layers.{layer}.fc2[{expert}]", hidden / (1 + np.exp(-hidden))


def check_statistics(tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        calibrate(tools, folder)
        metadata, tensors = stored_tensors.read(folder / "s.safetensors")
        for weight, rows in expected_rows():
            site = metadata[f"input of {weight}"]
            if tensors[f"{site}.rows"] != len(rows) or (len(rows) == 0) != weight.endswith(f"[{UNUSED}]"):
                raise suite.Failure(f"{weight}: expected {len(rows)} rows, but got {tensors[f'{site}.rows']}")
            if len(rows) == 0:
                continue
            moment = rows.T @ rows / len(rows)
            allowed = TOLERANCE * np.sqrt(np.outer(moment.diagonal(), moment.diagonal()))
            if not (np.abs(tensors[f"{site}.second_moment"] - moment) <= allowed).all():
                raise suite.Failure(f"{weight}: its Hessian is not that of the rows that chose it")


def compile_model(tools, folder, name, *flags):
    suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / name, "--report", folder / f"{name}.json",
                    "--remarks", folder / f"{name}.yaml", *flags])
    return folder / name


def loss_of(tools, artefact, folder):
    return json.loads(suite.run_tool([tools / "hone-run", "eval", artefact, "--tokens", folder / "tokens.npy", "--window", WINDOW,
                                      "--json"]))["loss"]


def check_integers(flags, kernel, most, tools):
    """`most`: what the loss may be more than that of the model as it is, relative to it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        calibrate(tools, folder)
        flags = [*flags, f"--calibration={folder / 's.safetensors'}"]
        once, again = (compile_model(tools, folder, name, *flags) for name in ("once.hone", "again.hone"))
        if (once / "weights.safetensors").read_bytes() != (again / "weights.safetensors").read_bytes():
            raise suite.Failure("expected the same bytes from the same options")
        if f'"{kernel}"' not in (once / "manifest.json").read_text():
            raise suite.Failure(f"expected a call of {kernel}")
        if f"1 of {EXPERTS} experts" not in (folder / "once.hone.yaml").read_text():
            raise suite.Failure("expected a remark that one expert was not chosen")
        rows = {weight["name"]: weight for weight in json.loads((folder / "once.hone.json").read_text())["weights"]}
        for weight in (f"layers.{i}.fc{j}" for i in range(LAYERS) for j in (1, 2)):
            if not rows[weight]["output_error"] or rows[weight]["bytes"] >= rows[weight]["bytes_before"]:
                raise suite.Failure(f"expected the report to say how much smaller {weight} is, and its error: {rows[weight]}")
        plain = loss_of(tools, compile_model(tools, folder, "plain.hone"), folder)
        loss = loss_of(tools, once, folder)
        if not abs(loss - plain) <= most * plain:
            raise suite.Failure(f"expected a loss near {plain}, but got {loss}")


def mask_two_of_four(weight):
    groups = np.abs(weight).reshape(*weight.shape[:-1], -1, 4)
    kept = np.argsort(-groups, axis=-1, kind="stable")[..., :2]
    mask = np.zeros(groups.shape, bool)
    np.put_along_axis(mask, kept, True, axis=-1)
    return mask.reshape(weight.shape)


def mask_pattern(weights):
    for name, weight in weights.items():
        if ".fc" in name:
            weights[name] = weight * mask_two_of_four(weight)
        elif weight.ndim == 2 and name.endswith((".weight", ".router")) and not name.startswith("lm_head"):
            weights[name] = weight * mask_two_of_four(weight.T).T


def mask_channels(kept):
    """Each expert keeps its own channels, those of the largest products of the norms of their rows and columns."""
    def mask(weights):
        for layer in range(LAYERS):
            first, second = weights[f"layers.{layer}.fc1"].astype(np.float64), weights[f"layers.{layer}.fc2"].copy()
            scores = (first**2).sum(axis=2) * (second.astype(np.float64)**2).sum(axis=1)
            for expert in range(EXPERTS):
                second[expert][:, np.argsort(-scores[expert])[kept:]] = 0
            weights[f"layers.{layer}.fc2"] = second
    return mask


def check_masked(flags, mask, kernel, tools):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = make_model()
        onnx.save(model, folder / "model.onnx")
        artefact = compile_model(tools, folder, "pruned.hone", *flags)
        if f'"{kernel}"' not in (artefact / "manifest.json").read_text():
            raise suite.Failure(f"expected a call of {kernel}")
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        mask(weights)
        for tensor in model.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(weights[tensor.name]), tensor.name))
        session = open_session(model)
        arrays = {}
        for case, count in enumerate((1, 7, 40)):
            inputs = feeds(session, tokens()[:count])
            arrays |= {f"case{case}/in/{key}": array for key, array in inputs.items()}
            arrays |= {f"case{case}/out/{output.name}": array for output, array in zip(session.get_outputs(), session.run(None, inputs))}
        np.savez(folder / "cases.npz", **arrays)
        suite.run_tool([tools / "hone-run", "run", artefact, "--cases", folder / "cases.npz", "--rtol", ANSWERS, "--atol", ANSWERS])


def check_export(tools):
    """Experts do not go back to a file with fewer channels: an error, and no file."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(make_model(), folder / "model.onnx")
        try:
            suite.run_tool([tools / "hone", "export", folder / "model.onnx", "--prune=structured", "--sparsity=20%", "-o", folder / "out.onnx"])
        except suite.Failure as failure:
            if "cannot export layers.1.fc2: the file has it in another form" not in str(failure) or (folder / "out.onnx").exists():
                raise
        else:
            raise suite.Failure("expected an error")


def check_element_export(tools):
    """Zeros of 2:4 go back to the tensor of all experts; integers do not, and a warning says so."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = make_model()
        onnx.save(model, folder / "model.onnx")
        before = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer if ".fc" in tensor.name}
        for flags, warning in ((["--prune=2:4"], ""), (["--quantize=int4", "--group=32"], "no node reads integers of matrices that are one tensor")):
            said = suite.run_tool([tools / "hone", "export", folder / "model.onnx", *flags, "-o", folder / "out.onnx"], stream="stderr")
            after = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "out.onnx").graph.initializer}
            for weight, whole in before.items():
                expected = whole if warning else whole * mask_two_of_four(whole)
                if weight not in after or not np.array_equal(after[weight], expected):
                    raise suite.Failure(f"{weight} is exported with other elements")
                if (f"{weight} is exported as it was: {warning}" in said) != bool(warning):
                    raise suite.Failure(f"expected a warning about {weight}, but got {said.splitlines()}" if warning else said)


def cases():
    yield "export", check_export
    yield "export of elements", check_element_export
    yield "statistics", check_statistics
    yield "int4 with outliers", functools.partial(check_integers, ["--quantize=int4", "--group=32", "--outliers=2%"],
                                                  "hone.expert_sum.outliers.u4", 0.02)
    yield "codebooks with outliers", functools.partial(
        check_integers, ["--quantize=int4", "--quantize-method=squeezellm-gptq", "--outliers=2%"], "hone.expert_sum.outliers.codebook.u4", 0.02)
    yield "2:4 by magnitude", functools.partial(check_masked, ["--prune=2:4", "--force"], mask_pattern, "hone.sparse_expert_sum.f32")
    yield "channels by magnitude", functools.partial(check_masked, ["--prune=structured", "--sparsity=20%"], mask_channels(64),
                                                     "hone.expert_sum.f32")


def main():
    options = suite.parser(__doc__).parse_args()
    chosen = [(name, case) for name, case in cases() if options.only in name]
    return suite.run_all(chosen, lambda case: case((options.build / "bin").resolve()), options.jobs)


sys.exit(main())
