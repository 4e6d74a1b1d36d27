# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two processes over MPI against one: models that are split over them give what is stored, and write the same text.

Sums over ranks are added in another order, so that logits differ in their last bits. Weights in groups of 64 are multiplied with
the same integers on two ranks as on one. With one scale a row, activations are rounded by that of a rank's part of the row, which
is another rounding, no worse than that of one process.
"""

import functools
import pathlib
import sys
import tempfile

import numpy as np
import onnx

import suite
from parallel import RANKS, compile_model, expect_sentence, run, run_suite, start

TOLERANCE = 1e-4  # as in run-models.py
LM = suite.ROOT / "examples" / "python-lm" / "model.onnx"
# Models by what they have: fused projections and biases; GQA; one node for attention; no state.
MODELS = ["gpt2.optimum/model", "llama.dynamo23/model", "qwen2.genai/model", "bert.optimum/model"]
# Rounded alike on one and on two ranks. They may differ by an activation whose last bit puts it into the next of 127 levels, which the
# layers after it spread over a row of logits: how often depends on the order of sums, and so on the processor. Nine of ten rows have to
# agree within QUANTIZED_TOLERANCE, and all together to within a quarter of what rounding weights and activations costs.
QUANTIZED = {"int4": ["--quantize=int4"], "int8 in groups": ["--quantize=int8", "--group=64"]}
QUANTIZED_TOLERANCE = 0.05  # of logits up to 13
QUANTIZED_RATIO = 0.25
ROWS = ["--quantize=int8"]
ROWS_RATIO = 1.25  # of the errors of two roundings of 33 rows of 2048 logits; the larger may be either
NEW_TOKENS = 24


def check_model(path, build):
    """Tensors in and out, whole on each rank, against what is stored of onnxruntime."""
    with tempfile.TemporaryDirectory() as name:
        artefact, tools = pathlib.Path(name) / "m.hone", build / "bin"
        compile_model(tools, path, artefact)
        printed = run(tools, ["run", artefact, "--cases", path.with_suffix(".npz"), "--rtol", TOLERANCE, "--atol", TOLERANCE])
        if printed.count("as expected") != 1:
            raise suite.Failure(f"expected one rank to print, but got: {printed!r}")


def check_generation(build):
    """A prompt in pieces, then token by token with state: greedily and by draws."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = pathlib.Path(name), build / "bin"
        np.save(folder / "prompt.npy", np.random.default_rng(3).integers(3, 2000, (2, 21), dtype=np.int32))
        texts = {}
        for ranks in (1, RANKS):
            compile_model(tools, LM, folder / f"{ranks}.hone", ranks=ranks)
            for way, flags in {"greedy": [], "drawn": ["--temperature", 0.8, "--seed", 7]}.items():
                texts[ranks, way] = run(tools, ["run", folder / f"{ranks}.hone", "--tokens", folder / "prompt.npy",
                                                "--ignore-end", "--prefill-chunk", 8, "--max-new-tokens", NEW_TOKENS, *flags],
                                        ranks if ranks > 1 else 0)
    for way in ("greedy", "drawn"):
        if len(texts[1, way].split()) != 2 * NEW_TOKENS or texts[1, way] != texts[RANKS, way]:
            raise suite.Failure(f"{way}: {RANKS} processes write {texts[RANKS, way]!r}, one writes {texts[1, way]!r}")


def logits(tools, artefact, inputs, output, ranks):
    run(tools, ["run", artefact, "--inputs", inputs, "--outputs", output], ranks)
    with np.load(output) as arrays:
        return arrays["logits"]


def write_prompt(path):
    """A prompt for the ONNX signature of the language model, with nothing before it."""
    tokens = np.random.default_rng(5).integers(3, 2000, (1, 33))
    past = {entry.name: np.zeros((1, 2, 0, 32), np.float32) for entry in onnx.load(LM).graph.input
            if entry.name.startswith("past_key_values")}
    np.savez(path, input_ids=tokens, attention_mask=np.ones_like(tokens), position_ids=np.arange(tokens.shape[1])[None], **past)


def compare_logits(flags, build, folder):
    """The logits of one process and of two, whose weights have to be fewer."""
    results = []
    write_prompt(folder / "in.npz")
    for ranks in (1, RANKS):
        artefact = folder / f"{ranks}.hone"
        compile_model(build / "bin", LM, artefact, flags, ranks)
        results.append(logits(build / "bin", artefact, folder / "in.npz", folder / "out.npz", ranks if ranks > 1 else 0))
    sizes = [path.stat().st_size for path in (folder / f"{RANKS}.hone").glob("weights.rank*")]
    whole = (folder / "1.hone" / "weights.safetensors").stat().st_size
    if len(sizes) != RANKS or max(sizes) >= whole:
        raise suite.Failure(f"ranks have {sizes} bytes of weights, and one process {whole}")
    return results


def root_mean_square(values):
    return np.sqrt(np.mean(values ** 2))


def exact_logits(build, folder):
    """Those of one process without rounding, for the prompt of compare_logits."""
    compile_model(build / "bin", LM, folder / "exact.hone", ranks=1)
    return logits(build / "bin", folder / "exact.hone", folder / "in.npz", folder / "out.npz", 0)


def check_quantized(flags, build):
    """Parts of weights as they are stored give what the whole weights give."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one, two = compare_logits(flags, build, folder)
        rounding = root_mean_square(one - exact_logits(build, folder))
    most = np.abs(one - two).max(axis=-1)
    if not np.quantile(most, 0.9) <= QUANTIZED_TOLERANCE:
        raise suite.Failure(f"logits of {(most > QUANTIZED_TOLERANCE).sum()} of {most.size} rows differ by up to {most.max()}")
    if not root_mean_square(one - two) <= QUANTIZED_RATIO * rounding:
        raise suite.Failure(f"logits differ by {root_mean_square(one - two)} in the mean, where rounding costs {rounding}")


def check_rows(build):
    """Another rounding of activations, as near to what is not rounded."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one, two = compare_logits(ROWS, build, folder)
        exact = exact_logits(build, folder)
    of_one, of_two = (root_mean_square(some - exact) for some in (one, two))
    if not of_two <= ROWS_RATIO * of_one:
        raise suite.Failure(f"logits of two ranks err by {of_two}, those of one process by {of_one}")


def check_refusals(build):
    """Too few, too many, a damaged rank: a sentence and exit 1, and nobody waits."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = pathlib.Path(name), build / "bin"
        artefact = folder / "m.hone"
        compile_model(tools, LM, artefact)
        np.save(folder / "prompt.npy", np.arange(3, 9, dtype=np.int32))
        command = ["run", artefact, "--tokens", folder / "prompt.npy", "--max-new-tokens", 2]
        expect_sentence(start(tools, command, 0), "alone", "m.hone: expected 2 processes, but got 1", 1)
        expect_sentence(start(tools, command, 3), "three", "m.hone: expected 2 processes, but got 3", 1)
        weights = artefact / "weights.rank1.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
        expect_sentence(start(tools, command), "damaged", "hone-run: rank 1: ")


def cases():
    models = suite.models(own=True)
    for model in MODELS:
        yield model, functools.partial(check_model, models[model])
    yield "generation", check_generation
    for name, flags in QUANTIZED.items():
        yield name, functools.partial(check_quantized, flags)
    yield "int8 in rows", check_rows
    yield "refusals", check_refusals


sys.exit(run_suite(__doc__, cases()))
