# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of sequences that keep what was accepted of each: logits are, bit for bit, those of each sequence alone, and texts that are written
several at once, with drafts of every kind or without, those of each prompt alone. On the emulated GPU, whose kernels differ by the number of
rows, logits are those within rounding."""

import ctypes
import functools
import pathlib
import sys
import tempfile

import numpy as np

import runtime
import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
CACHES = ["f32", "bf16", "int8", "int4"]
DEVICE_CACHES = {"model": 5e-5, "bf16": 2e-3}
MODELS = ["llama.dynamo23/model", "gpt2.optimum/model", "qwen2.genai/model"]
FORMS = [[], ["--weights=bf16"], ["--quantize=int8"], ["--quantize=int4"], ["--prune=2:4"], ["--kv-cache=int8"], ["--kv-cache=int4"],
         ["--kv-cache=bf16"]]
REFUSED = {"t5.optimum/decoder_model_merged": "goes by the order of the tokens",
           "bert.optimum/model": "the model has no entry 'forward' of tokens with a state"}
LARGER_FORMS = [[], ["--quantize=int4"]]  # of the larger model of the shared folder
PROMPTS, NEW_TOKENS = 4, 64  # a batch of three, and a prompt that begins as one ends
SAMPLED = ["--temperature", 0.8, "--top-p", 0.95, "--repetition-penalty", 1.1, "--seed", 5]
MODEL_DRAFTS = ["--speculate", "model", "--draft-tokens", 8]
# As many tokens as are allowed are drafted and verified, whatever passes take, and greedy texts are the same by this rule.
WHOLE = ["--accept", "exact", "--draft-confidence", 0]
# With tiles, as many as leave the rows of three sequences bits of their own.
AUTOMATON = ["--speculate", "automaton", *(["--draft-tokens", 15] if suite.has_tiles() else [])]
DRAFTS = {"plain": [], "automaton": AUTOMATON, "several": ["--speculate", "automaton,lookup", "--draft-tokens", 8],
          "sampled": [*AUTOMATON, *SAMPLED], "trees": [*AUTOMATON, "--draft-tree"],
          "sampled trees": [*AUTOMATON, "--draft-tree", *SAMPLED], "draft model": MODEL_DRAFTS,
          "whole drafts of a model": [*MODEL_DRAFTS, *WHOLE], "trees of a model": [*MODEL_DRAFTS, *WHOLE, "--draft-tree"],
          "sampled trees of a model": [*MODEL_DRAFTS, "--draft-tree", *SAMPLED]}
STOPS = ["--stop", "\n    ", "--stop", "\n\n"]


def compile_model(tools, path, output, *flags):
    suite.run_tool([tools / "hone", "compile", path, "--speculate=tree,batch", *flags, "-o", output, "--quiet"])
    return output


def forward(session, name, tokens):
    return session.forward({name: np.array(tokens, np.int64)}, "logits")


def expect_equal(what, actual, expected, tolerance):
    """Bit for bit, or within a share of the largest logit: that is the size of the terms whose sums are rounded in another order."""
    is_close = np.abs(actual - expected).max() <= tolerance * np.abs(expected).max() if tolerance else actual.tobytes() == expected.tobytes()
    if not is_close:
        raise suite.Failure(f"{what}: logits differ by up to {np.abs(actual - expected).max():.3g}")


def check_decoder(tools, library, path, flags, tolerance=0):
    """Sequences of different lengths, of which each call keeps another number of tokens, beside each of them alone."""
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        module = runtime.Module(library, compile_model(tools, path, pathlib.Path(folder) / "model.hone", *flags))
        name = module.names("forward", runtime.INPUT)[0]
        alone = [runtime.Session(module) for _ in range(3)]
        for session, length in zip(alone, (5, 40, 20)):
            forward(session, name, [random.integers(1, 200, length)])
        batch = runtime.Session.join(alone)
        for step, width in enumerate((1, 4, 9, 2, 30, 1, 7)):
            tokens = random.integers(1, 200, (3, width))
            logits = forward(batch, name, tokens)
            counts = [int(random.integers(0, width + 1)) for _ in alone]
            batch.keep_each([list(range(count)) for count in counts])
            for number, (session, count) in enumerate(zip(alone, counts)):
                if count > 0:
                    expect_equal(f"step {step}, sequence {number}", logits[number, :count], forward(session, name, [tokens[number, :count]])[0],
                                 tolerance)
            if step == 3:
                fork = batch.fork()
                forward(batch, name, tokens)
                batch.close()
                batch = fork
            if step == 4:
                batch.truncate_each([3, 20, 15])
                for session, length in zip(alone, (3, 20, 15)):
                    session.truncate(length)
        for session in [batch, *alone]:
            session.close()
        module.close()


def check_texts(tools, path, flags, drafts_itself):
    tokens = np.load(suite.shared_models() / "lm" / "test.tokens.npy").ravel() if path != EXAMPLE else None
    random = np.random.default_rng(11)
    starts = random.integers(0, 4000, PROMPTS)
    prompts = [tokens[start:start + 40] for start in starts] if tokens is not None else random.integers(1, 500, (PROMPTS, 40))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "prompts.npy", np.asarray(prompts, np.int64))
        plain = folder / "plain.hone"
        tokenizer = f"--tokenizer={EXAMPLE.with_name('tokenizer.json') if path == EXAMPLE else suite.shared_models() / 'lm' / 'tokenizer.json'}"
        suite.run_tool([tools / "hone", "compile", path, *flags, tokenizer, "-o", plain, "--quiet"])
        batched = compile_model(tools, path, folder / "batched.hone", *flags, tokenizer, *(["--draft=self:int4"] if drafts_itself else []))

        def write(artefact, *options):
            suite.run_tool([tools / "hone-run", "run", artefact, "--tokens", folder / "prompts.npy", "--output-tokens", folder / "new.npy",
                            "--max-new-tokens", NEW_TOKENS, *options])
            return np.load(folder / "new.npy")

        def check(manner, wanted, *options):
            for size in 1, 3:
                written = write(batched, "--batch", size, *options)
                if not np.array_equal(written, wanted):
                    raise suite.Failure(f"{manner}, {size} at once: expected {wanted.tolist()}, but got {written.tolist()}")

        expected = {is_sampled: write(plain, *(SAMPLED if is_sampled else [])) for is_sampled in (False, True)}
        hasTrees = not suite.has_tiles() or (path == EXAMPLE and not flags)  # over f32
        manners = {manner: options for manner, options in DRAFTS.items()
                   if (drafts_itself or "model" not in options) and (hasTrees or "--draft-tree" not in options)}
        for manner, options in manners.items():
            check(manner, expected["sampled" in manner], *options)
        stopped = write(plain, *STOPS)
        if stopped.shape == expected[False].shape and np.array_equal(stopped, expected[False]):
            raise suite.Failure("expected texts that end before a stop string, but there is none")
        for manner in "plain", "several", [manner for manner in manners if "sampled" not in manner][-1]:
            check(f"{manner} with stop strings", stopped, *DRAFTS[manner], *STOPS)


def check_refused(tools, path, message):
    with tempfile.TemporaryDirectory() as folder:
        try:
            compile_model(tools, path, pathlib.Path(folder) / "model.hone")
        except suite.Failure as failure:
            if message in str(failure):
                return
            raise
        raise suite.Failure(f"expected '{message}', but it was compiled")


def cases(tools, library):
    known = suite.models(own=True)
    everything = suite.models()
    for model in MODELS:
        for cache in CACHES:
            yield f"{model} {cache}", functools.partial(check_decoder, tools, library, known[model], [f"--kv-cache={cache}"])
        for cache, tolerance in DEVICE_CACHES.items():
            yield f"{model} {cache} on CUDA", functools.partial(check_decoder, tools, library, known[model],
                                                                ["--target=cuda", "--chip=sm_80", f"--kv-cache={cache}"], tolerance)
    for model, message in REFUSED.items():
        if model in everything:
            yield f"{model} is refused", functools.partial(check_refused, tools, everything[model], message)
    paths, forms = {"examples/python-lm": EXAMPLE}, {"examples/python-lm": FORMS, "lm/target/optimum": LARGER_FORMS}
    if shared := suite.shared_models():
        paths |= {f"lm/{path.parent.parent.name}/{path.parent.name}": path for path in sorted((shared / "lm").glob("*/*/model.onnx"))}
    for name, path in paths.items():
        for flags in forms.get(name, [[]]):
            yield f"{name} {' '.join(flags)}", functools.partial(check_texts, tools, path, flags, drafts_itself=name in forms)


def main():
    options = suite.parser(__doc__).parse_args()
    build = options.build.resolve()
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    chosen = [case for case in cases(build / "bin", build / "lib" / "libhone_rt.so") if options.only in case[0]]
    return suite.run_all(chosen, lambda case: case(), options.jobs)


if __name__ == "__main__":
    sys.exit(main())
