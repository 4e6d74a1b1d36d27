# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of what `hone tune` makes of a model, for every device.

Each takes the device that runs the steps and the folder of the tools. What is expected follows from optimizers in f64, from losses that
onnxruntime computes, and from other runs on the same device.
"""

import json
import pathlib
import subprocess
import tempfile
import time
import typing

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import gradient_models
import suite
from tuning_matrices import keep_largest, orthogonalize, shrink

VOCABULARY, WIDTH, HIDDEN, CONTEXT, BATCH, STEPS = 24, 16, 32, 10, 3, 5
TOKENS = 131  # 13 windows: a step goes from one order of them to the next
RATE = 0.02
# Of the learning rate: what updates of f32 may differ from those of f64. Elements whose gradient is rounded to another one move by as much as
# the optimizer divides them by less than 1.
CLOSE = 1e-3
LOSS = 2e-6  # relative: means over 30 rows of f32 against f64


class Device(typing.NamedTuple):
    """What runs the steps: options of the command, and how far losses and weights may be from the expected ones."""
    flags: list
    loss: float   # relative
    close: float  # of the learning rate


CPU = Device([], 50 * LOSS, CLOSE)


def weights():
    random = np.random.default_rng(11)
    shapes = {"table": (VOCABULARY, WIDTH), "gain": (WIDTH,), "up": (WIDTH, HIDDEN), "bias": (HIDDEN,), "down": (HIDDEN, VOCABULARY)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def pruned_weights():
    """Two of four elements of some matrices are 0, and one of a vector, which is no mask."""
    values = weights()
    values["up"].reshape(-1, 4)[:, 1:3] = 0
    values["down"].reshape(-1, 4)[:, ::2] = 0
    values["bias"][3] = 0
    return values


def make_model(values, as_inputs):
    """Logits of tokens; the weights are initializers or inputs."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("Mul", ["x", "gain"], ["scaled"]),
             helper.make_node("MatMul", ["scaled", "up"], ["h"]), helper.make_node("Add", ["h", "bias"], ["sum"]),
             helper.make_node("Tanh", ["sum"], ["t"]), helper.make_node("MatMul", ["t", "down"], ["logits"])]
    return gradient_models.make_model(nodes, values, VOCABULARY, as_inputs)


def windows(count, seed):
    """Numbers of windows in the order of `hone tune`: permutations by Fisher and Yates with SplitMix64."""
    state, mask, order = seed, (1 << 64) - 1, list(range(count))
    while True:
        for i in range(count, 1, -1):
            state = (state + 0x9E3779B97F4A7C15) & mask
            mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
            draw = (mixed ^ (mixed >> 31)) % i
            order[i - 1], order[draw] = order[draw], order[i - 1]
        yield from list(order)


def batches(tokens, seed):
    order = windows((len(tokens) - 1) // CONTEXT, seed)
    while True:
        rows = np.stack([tokens[CONTEXT * i:CONTEXT * i + CONTEXT + 1] for _, i in zip(range(BATCH), order)])
        yield rows[:, :-1], rows[:, 1:]


def tune_command(device, tools, folder, model, *options, steps, context, batch):
    return [tools / "hone", "tune", model, "--data", folder / "tokens.npy", "-o", folder / "tuned.onnx", "--log", folder / "log.jsonl",
            f"--context={context}", f"--batch={batch}", f"--steps={steps}", "--threads=1", *device.flags, *options]


def tune(device, tools, folder, model, tokens, *options, steps=STEPS, context=CONTEXT, batch=BATCH):
    """The tuned model and the lines of the log."""
    np.save(folder / "tokens.npy", tokens)
    suite.run_tool(tune_command(device, tools, folder, model, *options, steps=steps, context=context, batch=batch))
    return onnx.load(folder / "tuned.onnx"), [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def loss_of(model, ids, targets):
    """The mean cross-entropy of logits that onnxruntime computes."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    known = {"attention_mask": np.ones_like(ids), "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape).copy()}
    inputs = {}
    for number, value in enumerate(session.get_inputs()):
        sizes = [int(dim) if str(dim).isdigit() else len(ids) if axis == 0 else 0 for axis, dim in enumerate(value.shape)]
        past = np.zeros(sizes, np.float32) if "past" in value.name else None
        inputs[value.name] = ids if number == 0 else known.get(value.name, past)
    logits = session.run(["logits"], inputs)[0].astype(np.float64)
    most = logits.max(-1, keepdims=True)
    lse = np.log(np.exp(logits - most).sum(-1)) + most[..., 0]
    return float((lse - np.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean())


class Optimizer:
    """The formulas of docs/training.md in f64; a weight decay of matrices."""

    def __init__(self, kind, decay=0.0, clip=1.0, momentum=0.9, betas=(0.9, 0.999), epsilon=1e-8, keeps_zeros=False):
        self.kind, self.decay, self.clip, self.momentum, self.betas, self.epsilon = kind, decay, clip, momentum, betas, epsilon
        self.keeps_zeros = keeps_zeros
        self.steps, self.moments = 0, {}

    def flags(self):
        flags = [f"--optimizer={self.kind}", f"--weight-decay={self.decay}", f"--clip-norm={self.clip}"]
        if self.keeps_zeros:
            flags.append("--keep-zeros")
        if self.kind in ("momentum", "muon"):
            flags.append(f"--momentum={self.momentum}")
        if self.kind in ("adamw", "muon"):
            flags += [f"--beta1={self.betas[0]}", f"--beta2={self.betas[1]}", f"--epsilon={self.epsilon}"]
        return flags

    def first(self):
        """The weights that the first step has."""
        return pruned_weights() if self.keeps_zeros else weights()

    def read(self, values):
        """What the model computes with."""
        return values

    def write(self, values):
        return self.read(values)

    def check_tuned(self, first, read):
        pass

    def update(self, values, gradients, rate):
        """New values; gives the norm of the gradients as well."""
        self.steps += 1
        norm = np.sqrt(sum((gradient ** 2).sum() for gradient in gradients.values()))
        scale = min(1.0, self.clip / (norm + 1e-6)) if self.clip > 0 else 1.0
        updated = {name: self.update_one(name, value, gradients[name] * scale, rate) for name, value in values.items()}
        if self.keeps_zeros:
            updated = {name: np.where((values[name] == 0) & (value.ndim > 1), 0, value) for name, value in updated.items()}
        return updated, norm

    def update_one(self, name, value, gradient, rate):
        decay = self.decay if value.ndim >= 2 else 0.0
        if self.kind == "muon" and self.is_hidden(value):
            velocity = self.moments[name] = self.momentum * self.moments.get(name, 0.0) + (1 - self.momentum) * gradient
            ahead = self.momentum * velocity + (1 - self.momentum) * gradient
            return value * (1 - rate * decay) - rate * 0.2 * np.sqrt(max(value.shape)) * orthogonalize(ahead)
        if self.kind in ("sgd", "momentum"):
            step = gradient + decay * value
            if self.kind == "momentum":
                step = self.moments[name] = self.momentum * self.moments.get(name, 0.0) + step
            return value - rate * step
        first, second = self.moments.get(name, (0.0, 0.0))
        first = self.betas[0] * first + (1 - self.betas[0]) * gradient
        second = self.betas[1] * second + (1 - self.betas[1]) * gradient ** 2
        self.moments[name] = first, second
        corrected = first / (1 - self.betas[0] ** self.steps), second / (1 - self.betas[1] ** self.steps)
        return value * (1 - rate * decay) - rate * corrected[0] / (np.sqrt(corrected[1]) + self.epsilon)

    @staticmethod
    def is_hidden(value):
        """Neither a vector, nor a table or a layer with the size of the vocabulary."""
        return value.ndim == 2 and VOCABULARY not in value.shape


class SparseOptimizer(Optimizer):
    """Of the matrix that --prune=2:4 prunes, the model reads a projection, whose gradient is that of the matrix too. It lies input after
    input, so groups are four rows."""
    PRUNED = "up"

    def __init__(self, mode, mask_decay=None, ramp=0, start="dense", **others):
        super().__init__(others.pop("kind", "adamw"), **others)
        self.mode, self.mask_decay, self.ramp, self.start = mode, mask_decay, ramp, start
        dense = weights()[self.PRUNED].astype(np.float64)
        shrunk = shrink(dense if start == "dense" else keep_largest(dense))
        self.scale = (dense * shrunk).sum() / (shrunk ** 2).sum() # that of the first step

    def flags(self):
        flags = [*super().flags(), "--prune=2:4", f"--sparse-mode={self.mode}", f"--sparse-start={self.start}"]
        flags += [f"--mask-decay={self.mask_decay}"] if self.mask_decay is not None else []
        return [*flags, f"--mask-decay-ramp={self.ramp}"] if self.ramp else flags

    def first(self):
        is_pruned = self.start == "pruned"
        return {name: keep_largest(value) if is_pruned and name == self.PRUNED else value for name, value in weights().items()}

    def read(self, values):
        return values if self.mode == "cast" else self.write(values)

    def write(self, values):
        return {name: self.project(value) if name == self.PRUNED else value for name, value in values.items()}

    def project(self, value):
        return self.scale * shrink(value) if self.mode == "s-ste" else keep_largest(value)

    def check_tuned(self, first, read):
        """The pattern is exact, and that of a dense weight has changed."""
        kept = read[self.PRUNED] != 0
        if np.any(kept.reshape(-1, 4, kept.shape[1]).sum(1) > 2):
            raise suite.Failure("more than two of four are kept")
        if self.start == "dense" and np.array_equal(kept, keep_largest(first[self.PRUNED]) != 0):
            raise suite.Failure("the pattern has not changed, and nothing is tested")

    def update_one(self, name, value, gradient, rate):
        if name != self.PRUNED or self.mask_decay is None:
            return super().update_one(name, value, gradient, rate)
        step = self.steps - 1
        kept, part = keep_largest(value), min(1, step / self.ramp) if self.ramp else 1
        decay = self.mask_decay * part * (value - kept)
        if self.mode == "sr-ste":
            return super().update_one(name, value, gradient + decay, rate)
        first, second = self.moments.get(name, (0.0, 0.0))
        first = self.betas[0] * first + (1 - self.betas[0]) * gradient
        faded = (1 - part) * first + part * self.mask_decay * np.sign(value)
        used = np.where(kept == 0, faded, first) if self.mode == "cast" else first + decay
        second = self.betas[1] * second + (1 - self.betas[1]) * used ** 2
        self.moments[name] = first, second
        root = np.sqrt(second / (1 - self.betas[1] ** self.steps)) + self.epsilon
        return value * (1 - rate * self.decay) - rate * used / (1 - self.betas[0] ** self.steps) / root


class OnnxOptimizer(Optimizer):
    """Adam or Momentum of ai.onnx.preview.training. Adam adds epsilon to a root that is not corrected, which is the same where it is
    next to nothing."""

    def update_one(self, name, value, gradient, rate):
        if self.kind == "momentum":
            attributes = dict(alpha=self.momentum, beta=1.0, norm_coefficient=self.decay if value.ndim >= 2 else 0.0, mode="standard")
        else:
            attributes = dict(alpha=self.betas[0], beta=self.betas[1], epsilon=self.epsilon)
        moments = self.moments.get(name, [np.zeros_like(value)] * (1 if self.kind == "momentum" else 2))
        names = ["R", "T", "X", "G", *(f"M{i}" for i in range(len(moments)))]
        arrays = [np.float64(rate), np.int64(self.steps), value, gradient, *moments]
        outputs = ["out", *(f"out{i}" for i in range(len(moments)))]
        node = helper.make_node("Momentum" if self.kind == "momentum" else "Adam", names, outputs, domain="ai.onnx.preview.training",
                                **attributes)
        info = [helper.make_tensor_value_info(each, TensorProto.DOUBLE if i != 1 else TensorProto.INT64, None)
                for i, each in enumerate(names)]
        results = [helper.make_tensor_value_info(each, TensorProto.DOUBLE, None) for each in outputs]
        model = helper.make_model(helper.make_graph([node], "update", info, results),
                                  opset_imports=[helper.make_opsetid("ai.onnx.preview.training", 1), helper.make_opsetid("", 18)])
        new, *self.moments[name] = ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))
        return new


def rate_at(step, warmup, cosine):
    if step < warmup:
        return RATE * (step + 1) / warmup
    return RATE * (1 + np.cos(np.pi * (step - warmup) / (STEPS - warmup))) / 2 if cosine else RATE


def check_optimizer(make, warmup, cosine, seed, device, tools):
    optimizer = make()
    tokens = np.random.default_rng(7).integers(0, VOCABULARY, TOKENS).astype(np.int32)
    first = optimizer.first()
    values = {name: array.astype(np.float64) for name, array in first.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(make_model(pruned_weights() if optimizer.keeps_zeros else weights(), as_inputs=False), folder / "model.onnx")
        onnx.save(make_model(first, as_inputs=True), folder / "gradients.onnx")
        suite.run_tool([tools / "hone", "compile", folder / "gradients.onnx", "-o", folder / "gradients.hone",
                        f"--gradients={','.join(values)}", "--loss=cross-entropy"])
        schedule = [f"--schedule={'cosine' if cosine else 'constant'}", *([f"--warmup={warmup}"] if warmup else [])]
        tuned, log = tune(device, tools, folder, folder / "model.onnx", tokens, f"--learning-rate={RATE}", *schedule,
                          *([f"--seed={seed}"] if seed else []), *optimizer.flags())
        for step, (ids, targets), line in zip(range(STEPS), batches(tokens, seed), log, strict=False):
            rounded = {name: value.astype(np.float32) for name, value in optimizer.read(values).items()}
            inputs = {"ids": ids.astype(np.int64), "targets": targets.astype(np.int64), **rounded}
            outputs = gradient_models.run_gradients(tools, folder, inputs)
            rate = rate_at(step, warmup, cosine)
            gradients = {name: outputs[f"{name}.gradient"].astype(np.float64) for name in values}
            values, norm = optimizer.update(values, gradients, rate)
            expected = {"loss": loss_of(make_model(rounded, as_inputs=False), ids.astype(np.int64), targets), "gradient_norm": norm,
                        "learning_rate": rate}
            check_line(line, step, expected, device)
        if len(log) != STEPS:
            raise suite.Failure(f"the log has {len(log)} steps, not {STEPS}")
        check_weights(tuned, optimizer.write(values), device)
        optimizer.check_tuned(first, optimizer.write(values))


def check_line(line, step, expected, device):
    if line["step"] != step + 1:
        raise suite.Failure(f"line {step + 1} of the log is of step {line['step']}")
    for name, value in expected.items():
        if not abs(line[name] - value) <= device.loss * abs(value):
            raise suite.Failure(f"{name} of step {step + 1} is {line[name]}, not {value}")


def check_weights(tuned, values, device):
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in tuned.graph.initializer}
    if set(values) - set(found):
        raise suite.Failure(f"the tuned model has the initializers {sorted(found)}")
    for name, value in values.items():
        error = np.abs(found[name] - value).max()
        if not error <= device.close * RATE or np.any(found[name][value == 0]):
            raise suite.Failure(f"{name} is off by {error:.1e}, {error / RATE:.1e} of the learning rate")


def check_language_model(path, rate, device, tools):
    """The loss falls on windows that are seen again, runs with one thread are equal, and the next loss is that of the tuned model."""
    context, batch, steps, count = 32, 2, 6, 4
    tokens = np.random.default_rng(2).integers(0, 64, count * context + 1)
    flags = [f"--learning-rate={rate}", "--schedule=constant", "--weight-decay=0.1"]
    sizes = {"context": context, "batch": batch}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tuned, log = tune(device, tools, folder, path, tokens, *flags, steps=steps, **sizes)
        longer, more = tune(device, tools, folder, path, tokens, *flags, steps=steps + 1, **sizes)
        losses = [line["loss"] for line in log]
        if [line["loss"] for line in more[:steps]] != losses:
            raise suite.Failure("a second run gives other losses")
        if not max(losses[-2:]) < min(losses[:2]) - 0.3:
            raise suite.Failure(f"the loss does not fall: {losses}")
        order = windows(count, 0)
        chosen = [next(order) for _ in range(batch * (steps + 1))][-batch:]
        rows = np.stack([tokens[context * i:context * i + context + 1] for i in chosen])
        loss = loss_of(tuned, rows[:, :-1], rows[:, 1:])
        if not abs(more[-1]["loss"] - loss) <= 1e-4 * loss:
            raise suite.Failure(f"the tuned model has the loss {loss}, and the step after it {more[-1]['loss']}")
        if [node.op_type for node in longer.graph.node] != [node.op_type for node in onnx.load(path).graph.node]:
            raise suite.Failure("the tuned model has other nodes")


def check_accumulation(device, tools):
    """Batches of one window, three a step, are one batch of three; a run that goes on from a checkpoint sees the windows that are left."""
    tokens = np.random.default_rng(7).integers(0, VOCABULARY, TOKENS).astype(np.int32)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        onnx.save(make_model(weights(), as_inputs=False), model)
        flags = [f"--learning-rate={RATE}", "--optimizer=momentum", "--weight-decay=0.2"]
        whole, expected = tune(device, tools, folder, model, tokens, *flags)
        parts = [*flags, f"--accumulate={BATCH}", "--checkpoint", folder / "state.safetensors", "--checkpoint-every=3"]
        for _ in range(2):
            tuned, log = tune(device, tools, folder, model, tokens, *parts, batch=1)
            for step, (line, other) in enumerate(zip(log, expected, strict=True)):
                check_line(line, step, {key: other[key] for key in ("loss", "gradient_norm", "learning_rate")}, device)
            check_weights(tuned, {tensor.name: numpy_helper.to_array(tensor) for tensor in whole.graph.initializer}, device)


def check_validation(device, tools):
    """The loss on other tokens, of whole batches, before, after some steps and after the last one."""
    random = np.random.default_rng(9)
    tokens, others = random.integers(0, VOCABULARY, TOKENS).astype(np.int32), random.integers(0, VOCABULARY, 5 * CONTEXT + 1).astype(np.int32)
    rows = np.stack([others[CONTEXT * i:CONTEXT * i + CONTEXT + 1] for i in range(BATCH)]).astype(np.int64)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "tokens.npy", tokens)
        np.save(folder / "valid.npy", others)
        model = make_model(weights(), as_inputs=False)
        onnx.save(model, folder / "model.onnx")
        flags = [f"--learning-rate={RATE}", "--valid", folder / "valid.npy", "--valid-every=2"]
        said = suite.run_tool(tune_command(device, tools, folder, folder / "model.onnx", *flags, steps=STEPS, context=CONTEXT, batch=BATCH))
        log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        if [line["step"] for line in log if "valid_loss" in line] != [2, 4, 5]:
            raise suite.Failure(f"the loss is measured after steps {[line['step'] for line in log if 'valid_loss' in line]}")
        expected = [loss_of(model, rows[:, :-1], rows[:, 1:]), loss_of(onnx.load(folder / "tuned.onnx"), rows[:, :-1], rows[:, 1:])]
        if f"loss on --valid {expected[0]:.4f} before, {expected[1]:.4f} after" not in said:
            raise suite.Failure(f"the command says {said.splitlines()}, not {expected}")
        if not abs(log[-1]["valid_loss"] - expected[1]) <= device.loss * expected[1]:
            raise suite.Failure(f"the last loss is {log[-1]['valid_loss']}, not {expected[1]}")
        tune(device, tools, folder, folder / "model.onnx", tokens, f"--learning-rate={RATE}")
        if losses((folder / "log.jsonl").read_text()) != [line["loss"] for line in log]:
            raise suite.Failure("measuring changes what steps do")
        np.save(folder / "valid.npy", others[:2 * CONTEXT + 1])
        try:
            suite.run_tool(tune_command(device, tools, folder, folder / "model.onnx", *flags, steps=STEPS, context=CONTEXT, batch=BATCH))
        except suite.Failure as failure:
            if "expected at least 3 windows of 10 tokens to measure the loss on, a batch, but got 2" not in str(failure):
                raise
        else:
            raise suite.Failure("less than a batch is taken")


def check_checkpoints(path, device, tools):
    """A run that is killed after a checkpoint, and one that goes on from the last checkpoint of a whole one, end with the same bits."""
    tokens = np.random.default_rng(4).integers(0, 64, 8 * 16 + 1).astype(np.int32)
    sizes = {"context": 16, "batch": 2, "steps": 6}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, checkpoint = path, folder / "state.safetensors"
        flags = ["--checkpoint", checkpoint, "--checkpoint-every=4"]
        tune(device, tools, folder, model, tokens, **sizes)
        whole, log = (folder / "tuned.onnx").read_bytes(), (folder / "log.jsonl").read_text()
        for what in ("a run with checkpoints", "a run from its last checkpoint"):
            tune(device, tools, folder, model, tokens, *flags, **sizes)
            if (folder / "tuned.onnx").read_bytes() != whole:
                raise suite.Failure(f"{what} gives another model")
        checkpoint.unlink()
        (folder / "tuned.onnx").unlink()
        flags[1:] = [checkpoint, "--checkpoint-every=1"]
        kill_after(checkpoint, tune_command(device, tools, folder, model, *flags, **sizes))
        tune(device, tools, folder, model, tokens, *flags, **sizes)
        if (folder / "tuned.onnx").read_bytes() != whole:
            raise suite.Failure("a run that goes on after it was killed gives another model")
        if losses(log) != losses((folder / "log.jsonl").read_text()):
            raise suite.Failure("the log of a run that was killed has other losses")


def losses(log):
    return [json.loads(line)["loss"] for line in log.splitlines()]


def kill_after(file, command):
    """Kills a process once it has written the file."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not file.exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.wait()
    if not file.exists():
        raise suite.Failure("there is no checkpoint")


OPTIMIZERS = {
    "sgd": lambda: Optimizer("sgd", clip=0.0),
    "sgd/decayed": lambda: Optimizer("sgd", decay=0.3, clip=0.5),
    "momentum": lambda: Optimizer("momentum", decay=0.2, momentum=0.8),
    "adamw": lambda: Optimizer("adamw", decay=0.5),
    "adamw/unclipped": lambda: Optimizer("adamw", clip=0.0, betas=(0.8, 0.95), epsilon=1e-3),
    "adamw/pruned": lambda: Optimizer("adamw", decay=0.5, keeps_zeros=True),
    "sgd/pruned": lambda: Optimizer("sgd", clip=0.0, keeps_zeros=True),
    "sr-ste": lambda: SparseOptimizer("sr-ste", mask_decay=0.05, decay=0.5),
    "sr-ste/sgd": lambda: SparseOptimizer("sr-ste", mask_decay=0.5, start="pruned", kind="sgd", clip=0.0),
    "ast": lambda: SparseOptimizer("ast", mask_decay=0.05, ramp=3),
    "s-ste": lambda: SparseOptimizer("s-ste", decay=0.5, epsilon=1e-3),
    "s-ste/pruned": lambda: SparseOptimizer("s-ste", start="pruned"),
    "onnx/momentum": lambda: OnnxOptimizer("momentum", decay=0.2, clip=0.0),
    "onnx/adam": lambda: OnnxOptimizer("adamw", clip=0.0, epsilon=1e-20),
    "muon": lambda: Optimizer("muon", decay=0.5, momentum=0.9),
    "muon/unclipped": lambda: Optimizer("muon", clip=0.0),
    "muon/pruned": lambda: Optimizer("muon", decay=0.5, keeps_zeros=True),
    "sr-ste/muon": lambda: SparseOptimizer("sr-ste", mask_decay=0.5, start="pruned", kind="muon"),
    "cast": lambda: SparseOptimizer("cast", mask_decay=0.05, ramp=3),
}
