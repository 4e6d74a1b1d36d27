# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""com.microsoft.MoE and QMoE, and the spellings of exporters, against onnxruntime: a router, and experts that it chooses. On the CPU, and
for CUDA on the emulated driver (test/emulation).

onnxruntime has gates on the CPU where they lie between the rows of fc1 only; other forms are brought to that one for it.
"""

import itertools
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import expert_spellings
import suite

TOLERANCE = 1e-5  # f32 in another order of summation
# Kernels of integers round activations to 16 bits; two layers of a hundred products err by a few 1e-5 of results near 1.
INTEGERS = 3e-4
# onnxruntime rounds activations to 8 bits where codes of 8 bits have groups: against sums in floats it errs by 0.012 on average, and
# the worst of thousands by five of those.
CODES_OF_8_BITS = 8e-2
BF16 = 3e-2  # 2^-9 in each factor of two layers
SPLIT = 3e-4  # CUDA: inputs, and for large M weights, as two numbers of bf16, which err by 2^-16 each, in two layers
EXPERTS, CHOSEN, WIDTH, HIDDEN = 4, 2, 64, 96
ROWS = (1, 3, 70)
CLAMP = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.5}


class Model:
    """One block of experts as a model; `bits` of integers, 0 for floats."""

    def __init__(self, bits, group=0, activation="silu", fusion=0, gate=False, biases=False, normalize=1, experts=EXPERTS,
                 chosen=CHOSEN, zeros=False, rank=2, clamp=None):
        self.rng = np.random.default_rng(2)
        self.bits, self.group, self.zeros, self.rank = bits, group, zeros, rank
        self.constants = {"router": self.floats(WIDTH, experts)}
        fused = activation == "swiglu" and fusion != 0
        shapes = {"fc1": (HIDDEN * (2 if fused else 1), WIDTH), "fc2": (WIDTH, HIDDEN)}
        if gate:
            shapes["fc3"] = (HIDDEN, WIDTH)
        operands = ["x", "logits"]
        for name in ("fc1", "fc2", "fc3"):
            operands += self.layer(name, experts, *shapes[name], biases) if name in shapes else [""] * (3 if bits else 2)
        if zeros:
            operands += [self.zero_points(name, experts, *shapes[name]) if name in shapes else "" for name in ("fc1", "fc2", "fc3")]
        attributes = {"k": chosen, "activation_type": activation, "normalize_routing_weights": normalize}
        if activation == "swiglu":
            attributes |= {"swiglu_fusion": fusion, **(clamp or {"activation_alpha": 1.0, "activation_beta": 0.0})}
        if bits:
            attributes["expert_weight_bits"] = bits
            attributes |= {"block_size": group} if group else {}
        while not operands[-1]:
            operands.pop()
        self.is_gated, self.is_fused_in_halves = gate, fused and fusion == 2
        self.nodes = [helper.make_node("Reshape", ["x", "flat"], ["rows"]),
                      helper.make_node("MatMul", ["rows", "router"], ["logits"]),
                      helper.make_node("QMoE" if bits else "MoE", operands, ["y"], domain="com.microsoft", **attributes)]
        self.constants["flat"] = np.array([-1, WIDTH], np.int64)

    def floats(self, *shape):
        return (self.rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    def layer(self, name, experts, outputs, inputs, biases):
        """Names of an expert's operands, in their order."""
        names = [name]
        if self.bits:
            groups = [inputs // self.group] if self.group else []
            self.constants[name] = self.rng.integers(0, 256, (experts, outputs, inputs * self.bits // 8), dtype=np.uint8)
            self.constants[name + ".scales"] = (self.rng.uniform(0.5, 1.5, (experts, outputs, *groups)) /
                                                np.sqrt(inputs) / 2 ** (self.bits - 2)).astype(np.float32)
            names.append(name + ".scales")
        else:
            self.constants[name] = self.floats(experts, outputs, inputs)
        if biases:
            self.constants[name + ".bias"] = self.floats(experts, outputs)
        return [*names, name + ".bias" if biases else ""]

    def zero_points(self, name, experts, outputs, inputs):
        groups = [-(-inputs // self.group * self.bits // 8)] if self.group else []
        self.constants[name + ".zeros"] = self.rng.integers(0, 256, (experts, outputs, *groups), dtype=np.uint8)
        return name + ".zeros"

    def reference(self):
        """The same for onnxruntime."""
        if not self.is_gated and not self.is_fused_in_halves:
            return self.proto()
        saved = self.nodes, self.constants
        self.constants = dict(self.constants)
        for suffix in ("", ".bias"):
            if "fc1" + suffix not in self.constants:
                continue
            gate = self.constants["fc1" + suffix]
            gate, up = (gate, self.constants.pop("fc3" + suffix)) if self.is_gated else np.split(gate, 2, axis=1)
            self.constants["fc1" + suffix] = np.stack([gate, up], axis=2).reshape(gate.shape[0], -1, *gate.shape[2:])
        node = self.nodes[-1]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        attributes |= {"activation_type": "swiglu", "swiglu_fusion": 1}
        attributes = {"activation_alpha": 1.0, "activation_beta": 0.0} | attributes
        self.nodes = [*self.nodes[:-1], helper.make_node("MoE", node.input[:6], ["y"], domain="com.microsoft", **attributes)]
        proto = self.proto()
        self.nodes, self.constants = saved
        return proto

    def proto(self):
        leading = ["b"] * (self.rank - 1)
        infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [*(f"{d}{i}" for i, d in enumerate(leading)), WIDTH])]
                 for name in "xy"]
        graph = helper.make_graph(self.nodes, "experts", *infos,
                                  [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        return helper.make_model(graph, ir_version=9,
                                 opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])

    def inputs(self, rows):
        shape = (rows, WIDTH) if self.rank == 2 else (1, rows, WIDTH)
        return {"x": self.rng.standard_normal(shape).astype(np.float32)}


FLOATS = {
    "relu": dict(activation="relu"),
    "gelu-bias": dict(activation="gelu", biases=True, normalize=0),
    "gate": dict(gate=True),
    "gate-bias-rank-3": dict(gate=True, biases=True, rank=3),
    "halves": dict(activation="swiglu", fusion=2, biases=True),
    "alternate": dict(activation="swiglu", fusion=1, biases=True, normalize=0),
    "alternate-clamped": dict(activation="swiglu", fusion=1, biases=True, clamp=CLAMP),
    "halves-clamped": dict(activation="swiglu", fusion=2, clamp=CLAMP),
    "one-expert": dict(experts=1, chosen=1, gate=True),
    "all-experts": dict(chosen=EXPERTS, gate=True),
}
QUANTIZED = {f"int{bits}-{group}-{form}": dict(bits=bits, group=group, **attributes)
             for bits, group, (form, attributes) in itertools.product(
                 (4, 8), (0, 32), (("alternate", dict(activation="swiglu", fusion=1, biases=True)),
                                   ("silu", dict(activation="silu"))))}


def cases():
    for target, floats in (("hone", TOLERANCE), ("cuda", SPLIT)):
        for name, arguments in FLOATS.items():
            yield f"{target}-{name}", Model(0, **arguments), target, [], floats
        yield f"{target}-gate-bf16", Model(0, gate=True), target, ["--weights=bf16"], BF16
        yield f"{target}-halves-f16", Model(0, activation="swiglu", fusion=2), target, ["--weights=f16"], BF16
        for name, model in expert_spellings.all_spellings():
            yield f"{target}-{name}", model, target, [], floats
        for name, arguments in QUANTIZED.items():
            tolerance = CODES_OF_8_BITS if name.startswith("int8-32") else INTEGERS
            yield f"{target}-{name}", Model(**arguments), target, [], tolerance


def check(model, target, flags, tolerance, tools):
    """`target`: the first word of its kernels."""
    if target == "cuda":
        flags = [*flags, "--target=cuda", "--chip=sm_80"]
    session = onnxruntime.InferenceSession(model.reference().SerializeToString(), providers=["CPUExecutionProvider"])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(model.proto(), folder / "model.onnx")
        suite.run_tool([tools / "hone", "compile", folder / "model.onnx", "-o", folder / "model.hone", *flags,
                        f"--save-ir={folder}"])
        if target == "cuda" and "hrt.fetch" in (folder / "5-buffer.mlir").read_text():
            raise suite.Failure("the host waits for what its router chose")
        if any(left in (folder / "1-raise.mlir").read_text() for left in ("onnx.MatMul", "hone.gated_mlp", "onnx.com.microsoft")):
            raise suite.Failure("not all of it is one block of experts")
        if f'"{target}.expert_sum.' not in (folder / "model.hone" / "manifest.json").read_text():
            raise suite.Failure("its experts run on no kernel")
        for rows in ROWS:
            inputs = model.inputs(rows)
            np.savez(folder / "in.npz", **inputs)
            np.savez(folder / "out.npz", y=session.run(None, inputs)[0])
            suite.run_tool([tools / "hone-run", "run", folder / "model.hone", "--inputs", folder / "in.npz",
                            "--expect", folder / "out.npz", "--rtol", tolerance, "--atol", tolerance])


def main():
    options = suite.parser(__doc__).parse_args()
    suite.use_emulated_driver(options.build)
    chosen = [(name, case) for name, *case in cases() if options.only in name]
    return suite.run_all(chosen, lambda case: check(*case, options.build / "bin"), options.jobs)


sys.exit(main())
