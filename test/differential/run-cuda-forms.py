# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artefacts for CUDA in narrower forms, on the emulated driver (test/emulation), against those of the CPU with the same options.

Models of test/models answer their stored cases: the CPU's answers are what is expected. A trained language model, that of examples/ and
where the shared folder exists one from there, goes on greedily as the CPU does.
"""

import ctypes
import functools
import json
import pathlib
import sys
import tempfile

import numpy as np

import emulation
import runtime
import sessions
import suite

MODELS = ["bert.optimum", "gemma2.genai", "gpt2.optimum", "opt.dynamo18", "qwen3_moe.optimum"]
LANGUAGE_MODELS = ["examples/python-lm/model.onnx", "lm/target/optimum/model.onnx"]
# `--quantize` asks for activations of 8 bits at least. The CPU takes 8 where it multiplies integers, the device 16. What both do with
# activations of 16 bits is what a pass without a number of bits asks for: the CPU rounds to 16-bit integers, the device to 16 bits of mantissa.
SAME_ACTIVATIONS = "--pass-pipeline=hone-quantize-weights{{bits={} group={} activations=0}}"
# By how much an answer may differ, absolutely and relatively. Beside weights of f16 both take activations as they are, beside weights of
# bf16 a CPU that multiplies pairs of bf16 rounds them to 8 bits of mantissa.
ANSWERS = {("--weights=f16",): 1e-4, ("--weights=bf16",): 5e-2,
           (SAME_ACTIVATIONS.format(8, 0),): 1e-3, (SAME_ACTIVATIONS.format(4, 32),): 1e-3}
# By how much answers may differ in the norm where one side rounds activations to 8 bits: a router may choose other experts for a token
# then, so that nothing bounds single answers.
NORMS = {("--quantize=int8",): 1e-1, ("--quantize=int4", "--group=32"): 1e-1}
# By how much answers may differ, as in ANSWERS, of a model that is pruned or has outliers, with the kernel that it is for.
COMPRESSED_MODEL = "llama.dynamo23/model"
COMPRESSED = {
    ("--prune=2:4", "--force"): ("sparse_linear.f32", 1e-4),
    ("--prune=2:4", "--weights=f16", "--force"): ("sparse_linear.f16", 1e-4),
    ("--prune=2:4", "--weights=bf16", "--force"): ("sparse_linear.bf16", 2e-2),
    ("--prune=2:4", "--quantize=int8", "--force"): ("sparse_linear.affine8", 5e-2),
    ("--prune=2:4", "--quantize=int4", "--group=32", "--force"): ("sparse_linear.affine4", 5e-2),
    ("--quantize=int4", "--group=64", "--outliers=1%"): ("linear.outliers.affine4", 5e-2),
    ("--quantize=int6", "--group=32", "--outliers=1%"): ("linear.outliers.affine6", 5e-2),
    ("--quantize=int5", "--group=32"): ("linear.affine5", 5e-2),
    ("--quantize=int3", "--group=32", "--outliers=1%"): ("linear.outliers.affine3", 5e-2),
    ("--quantize=int3", "--group=32"): ("linear.affine3", 5e-2),
    ("--quantize=int2", "--group=32"): ("linear.affine2", 5e-2),
}
# By how much the logits that texts go on by may differ, absolutely and relatively.
TEXTS = {(): 1e-4, ("--weights=bf16",): 5e-2,
         (SAME_ACTIVATIONS.format(4, 64), "--kv-cache=model"): 1e-3, ("--quantize=int4",): 2e-1}
PROMPTS, PROMPT_LENGTH, NEW_TOKENS = 2, 32, 12
BUDGET = 400_000_000  # instructions of warps, as in run-cuda.py


def compile_both(path, flags, build, folder):
    """The artefacts for the CPU and for CUDA."""
    artefacts = []
    for target in ["--target=cpu"], ["--target=cuda", "--chip=sm_80"]:
        artefacts.append(folder / f"{len(artefacts)}.hone")
        suite.run_tool([build / "bin" / "hone", "compile", path, *target, *flags, "-o", artefacts[-1], "--quiet"])
    return artefacts


def answers_of(artefact, path, build, folder):
    """The stored cases, with the answers of the artefact in place of those that are stored."""
    arrays = {}
    for label, case in suite.stored_cases(path).items():
        inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
        np.savez(inputs, **case["in"])
        suite.run_tool([build / "bin" / "hone-run", "run", artefact, "--inputs", inputs, "--outputs", outputs])
        arrays |= {f"{label}/in/{name}": array for name, array in case["in"].items()}
        arrays |= {f"{label}/out/{name}": array for name, array in np.load(outputs).items()}
    np.savez(folder / "cases.npz", **arrays)
    return folder / "cases.npz"


def check_answers(path, flags, tolerance, kernel, build):
    """The answers, and that the program for the device calls `kernel`, where it is one."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cpu, cuda = compile_both(path, flags, build, folder)
        called = json.loads((cuda / "manifest.json").read_text())["kernels"]
        if kernel and f"cuda.{kernel}" not in called:
            raise suite.Failure(f"expected cuda.{kernel} to be called, but got {', '.join(called)}")
        emulation.run_tool([build / "bin" / "hone-run", "run", cuda, "--cases", answers_of(cpu, path, build, folder),
                            "--rtol", tolerance, "--atol", tolerance], folder, BUDGET)


def check_norms(path, flags, build):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected, got = (dict(np.load(answers_of(artefact, path, build, folder)))
                         for artefact in compile_both(path, flags, build, folder))
        for key, array in expected.items():
            difference, norm = np.linalg.norm((got[key] - array).ravel()), np.linalg.norm(array.ravel())
            if "/out/" in key and not difference <= NORMS[flags] * norm:
                raise suite.Failure(f"{key}: differs by {difference:.4g} in the norm, where it has {norm:.4g}")


def prompts_of(path):
    """Prompts for a model: of text that every checkout has, or the stored ones."""
    if path.parent.joinpath("tokenizer.json").exists():
        from tokenizers import Tokenizer
        tokens = Tokenizer.from_file(str(path.with_name("tokenizer.json"))).encode(pathlib.Path(suite.__file__).read_text()).ids
    else:
        tokens = np.load(path.parents[2] / "eval_tokens.npy")
    starts = np.linspace(0, min(len(tokens), 4096) - PROMPT_LENGTH, PROMPTS).astype(int)
    return [np.asarray(tokens[start:start + PROMPT_LENGTH], np.int64) for start in starts]


def last_logits(session, name, tokens):
    return session.forward({name: np.asarray(tokens, np.int64)[None]}, "logits")[0, -1]


def compare_continuations(modules, prompt, tolerance):
    """Both go on from the prompt, until the device takes another token because the CPU's best two are about equally good."""
    name = modules[0].names("forward", runtime.INPUT)[0]
    cpu, cuda = (runtime.Session(module) for module in modules)
    try:
        tokens = prompt
        for position in range(NEW_TOKENS):
            expected, got = last_logits(cpu, name, tokens), last_logits(cuda, name, tokens)
            excess = np.abs(got - expected) - tolerance * (1 + np.abs(expected))
            if not (excess <= 0).all():
                at = np.argmax(excess)
                raise suite.Failure(f"token {position}: got the logit {got[at]:.6g} of {at}, expected {expected[at]:.6g}")
            if got.argmax() != expected.argmax():
                return
            tokens = [int(expected.argmax())]
    finally:
        cpu.close()
        cuda.close()


def check_continuations(path, flags, build):
    with tempfile.TemporaryDirectory() as name:
        artefacts = compile_both(path, flags, build, pathlib.Path(name))
        modules = [runtime.Module(build / "lib" / "libhone_rt.so", artefact) for artefact in artefacts]
        try:
            for prompt in prompts_of(path):
                compare_continuations(modules, prompt, TEXTS[flags])
        finally:
            for module in modules:
                module.close()


def cases():
    models = suite.models(own=True)
    for flags in ANSWERS:
        for name in MODELS:
            yield (f"{name} {' '.join(flags)}",
                   functools.partial(check_answers, models[f"{name}/model"], flags, ANSWERS[flags], None))
    for flags in NORMS:
        for name in MODELS:
            yield f"{name} {' '.join(flags)}", functools.partial(check_norms, models[f"{name}/model"], flags)
    for flags, (kernel, tolerance) in COMPRESSED.items():
        yield (f"{COMPRESSED_MODEL} {' '.join(flags)}",
               functools.partial(check_answers, models[COMPRESSED_MODEL], flags, tolerance, kernel))
    folders = [suite.ROOT, *filter(None, [suite.shared_models()])]
    for flags in TEXTS:
        for name in LANGUAGE_MODELS:
            for path in (folder / name for folder in folders if (folder / name).exists()):
                yield f"{name} {' '.join(flags)}", functools.partial(check_continuations, path, flags)


def main():
    options = suite.parser(__doc__).parse_args()
    # The runtime of this process and of those it starts: the loader knows by its name what is open.
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    chosen = [(name, case) for name, case in cases() if options.only in name]
    return suite.run_all(chosen, lambda case: case(options.build), options.jobs)


sys.exit(main())
