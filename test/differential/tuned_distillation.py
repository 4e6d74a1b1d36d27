# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of what `hone tune --teacher` makes of a model: losses that onnxruntime and numpy compute, and that steps follow their gradients."""

import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import gradient_models
import suite
import tuning
from tuning import BATCH, CONTEXT, RATE, TOKENS, VOCABULARY, WIDTH

WEIGHT, TEMPERATURE = 0.4, 3.0
FLAGS = ["--optimizer=sgd", "--clip-norm=0", "--schedule=constant", f"--learning-rate={RATE}", f"--distill-weight={WEIGHT}",
         f"--temperature={TEMPERATURE}"]


def run_model(model, ids, names):
    """What onnxruntime gives for these names."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [array.astype(np.float64) for array in session.run(names, {"ids": ids})]


def softmax(logits):
    most = np.exp(logits - logits.max(-1, keepdims=True))
    return most / most.sum(-1, keepdims=True)


def divergence_of(teacher, student):
    """The mean KL divergence of softmax(student / T) from softmax(teacher / T)."""
    p, q = (softmax(logits / TEMPERATURE) for logits in (teacher, student))
    return (p * (np.log(p) - np.log(q))).sum(-1).mean()


def check_step(device, tools, folder, student, tokens, loss, *options):
    """The loss that a step of sgd logs is loss(student), and the step follows the gradient of that."""
    tuned, log = tuning.tune(device, tools, folder, folder / "model.onnx", tokens, *FLAGS, "--teacher", folder / "teacher.onnx", *options,
                             steps=1)
    tuning.check_line(log[0], 0, {"loss": loss(student)}, device)
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in tuned.graph.initializer}
    moves = {name: (found[name] - value) / -RATE for name, value in student.items()}
    # Along its own gradient the loss grows by the square of the norm, to second order in the step.
    further, back = ({name: (value + sign * 1e-3 * moves[name]).astype(np.float32) for name, value in student.items()} for sign in (1, -1))
    slope, square = (loss(further) - loss(back)) / 2e-3, sum((move.astype(np.float64) ** 2).sum() for move in moves.values())
    if not abs(slope - square) <= 1e-3 * square:
        raise suite.Failure(f"the loss grows by {slope} along the gradient, whose square is {square}")


def check_distillation(device, tools):
    """The loss has the divergence from the teacher, at its temperature; steps of sgd follow the gradient of that. A pruned model with the
    dense one as its teacher has the loss of cross-entropy on validation data."""
    tokens = np.random.default_rng(7).integers(0, VOCABULARY, TOKENS).astype(np.int32)
    student = tuning.pruned_weights()
    teacher = tuning.make_model({name: value + np.float32(0.1) for name, value in tuning.weights().items()}, as_inputs=False)
    ids, targets = (rows.astype(np.int64) for rows in next(tuning.batches(tokens, 0)))

    def loss(values):
        model = tuning.make_model(values, as_inputs=False)
        divergence = divergence_of(*(run_model(each, ids, ["logits"])[0] for each in (teacher, model)))
        return (1 - WEIGHT) * tuning.loss_of(model, ids, targets) + WEIGHT * TEMPERATURE ** 2 * divergence

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(tuning.make_model(student, as_inputs=False), folder / "model.onnx")
        onnx.save(teacher, folder / "teacher.onnx")
        np.save(folder / "valid.npy", tokens)
        check_step(device, tools, folder, student, tokens, loss)
        command = tuning.tune_command(device, tools, folder, folder / "model.onnx", *FLAGS, "--teacher=dense", "--prune=1:4", "--valid",
                                      folder / "valid.npy", steps=1, context=CONTEXT, batch=BATCH)
        said = suite.run_tool(command)
        rows = np.stack([tokens[CONTEXT * i:CONTEXT * i + CONTEXT + 1] for i in range(12)]).astype(np.int64)
        expected = tuning.loss_of(onnx.load(folder / "tuned.onnx"), rows[:, :-1], rows[:, 1:])
        if f", {expected:.4f} after" not in said:
            raise suite.Failure(f"the command says {said.splitlines()}, not {expected}")


def residual_weights(seed):
    random = np.random.default_rng(seed)
    shapes = {"table": (VOCABULARY, WIDTH), "inner": (WIDTH, WIDTH), "head": (WIDTH, VOCABULARY)}
    gains = {"ones": np.ones(WIDTH, np.float32), "fours": np.ones(WIDTH // 4, np.float32)}
    return gains | {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def make_residual_model(values, outputs=()):
    """A residual layer between two norms, which read `hidden0` and `hidden1`; the norm of other rows between them reads no hidden state."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["hidden0"]),
             helper.make_node("LayerNormalization", ["hidden0", "ones"], ["n0"], epsilon=1e-5),
             helper.make_node("MatMul", ["n0", "inner"], ["product"]),
             helper.make_node("Reshape", ["product", "heads"], ["parts"]),
             helper.make_node("LayerNormalization", ["parts", "fours"], ["normed"], epsilon=1e-5),
             helper.make_node("Reshape", ["normed", "rows"], ["branch"]),
             helper.make_node("Add", ["hidden0", "branch"], ["hidden1"]),
             helper.make_node("LayerNormalization", ["hidden1", "ones"], ["n1"], epsilon=1e-5),
             helper.make_node("MatMul", ["n1", "head"], ["logits"])]
    model = gradient_models.make_model(nodes, values, VOCABULARY, as_inputs=False)
    for name, shape in {"heads": [0, 0, 4, WIDTH // 4], "rows": [0, 0, WIDTH]}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), name))
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "sequence", WIDTH]) for name in outputs)
    return model


def check_features(device, tools):
    """The loss has the mean relative square of the error of hidden states too; a teacher without as many is refused."""
    weight, names = 2.0, ["hidden0", "hidden1"]
    tokens = np.random.default_rng(8).integers(0, VOCABULARY, TOKENS).astype(np.int32)
    student, teacher = residual_weights(1), residual_weights(2)
    ids, targets = (rows.astype(np.int64) for rows in next(tuning.batches(tokens, 0)))
    known_logits, *known = run_model(make_residual_model(teacher, names), ids, ["logits", *names])

    def loss(values):
        hard = tuning.loss_of(make_residual_model(values), ids, targets)
        logits, *states = run_model(make_residual_model(values, names), ids, ["logits", *names])
        error = np.mean([((state - other) ** 2).sum() / (other ** 2).sum() for state, other in zip(states, known, strict=True)])
        return (1 - WEIGHT) * hard + WEIGHT * TEMPERATURE ** 2 * divergence_of(known_logits, logits) + weight * error

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(make_residual_model(student), folder / "model.onnx")
        onnx.save(make_residual_model(teacher), folder / "teacher.onnx")
        check_step(device, tools, folder, student, tokens, loss, f"--feature-weight={weight}")
        onnx.save(tuning.make_model(tuning.weights(), as_inputs=False), folder / "teacher.onnx")
        suite.expect_failure(lambda: check_step(device, tools, folder, student, tokens, loss, f"--feature-weight={weight}"),
                             "cannot distill: expected the teacher to have 2 hidden states, but got 0")
