# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A trained language model: greedy continuations token for token and perplexity, against onnxruntime.

The model of examples/ is compared on its own source of truth, onnxruntime over the same file. Where the shared folder
exists, every exporter's file of the models in it is compared with the stored continuations and perplexities. In narrower
forms the example and the larger of those models keep their perplexity within the bounds of FORMS, and of two methods of ORDERS the
first is the better one. How tokens are fed is a matter of the runtime and not of the file: the same two show all of it.
"""

import functools
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime

import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
PROMPTS, PROMPT_LENGTH, NEW_TOKENS = 4, 32, 64
WINDOW = 512
PERPLEXITY_TOLERANCE = 1e-3
# A continuation is not held against us where the reference's two best tokens are closer than f32 sums can tell.
LEAST_MARGIN = 1e-4
# By how much perplexity may move: 16 bits hardly, 8 bits a little. Four bits rounded to nearest cost a model as small as these
# 2 to 4 percent; onnxruntime's own four bits cost 2.
FORMS = {("--weights=bf16",): 1e-3, ("--weights=f16",): 1e-3, ("--kv-cache=bf16",): 1e-3,
         ("--kv-cache=int8",): 5e-3,
         ("--quantize=int8",): 5e-3, ("--quantize=int8", "--group=64", "--kv-cache=model"): 5e-3,
         # Each bit less costs about four times as much; on top of that the text that is measured on moves an example as small as this by
         # 2 percent, so that four bits can come out better than five.
         ("--quantize=int6",): 5e-3, ("--quantize=int5",): 4e-2,
         ("--quantize=int4", "--group=32"): 6e-2,
         # Measured inputs take half of that away, and half of the weights leave a small model a fifth worse.
         ("--quantize=int4", "--group=32", "--calibration"): 3e-2,
         # Three bits have half the codes of four, and cost about four times as much, 7 percent; wrong codes cost any number.
         ("--quantize=int3", "--group=32", "--calibration"): 1.2e-1,
         ("--prune=2:4", "--calibration"): 3e-1}
# With four bits the text that is measured on moves the example as much as the method does; with three, methods are far apart.
ORDERS = [("--quantize=int3", "--calibration"), ("--quantize=int3",)], \
         [("--prune=2:4", "--calibration"), ("--prune=2:4", "--prune-method=wanda", "--calibration"), ("--prune=2:4",)]
CALIBRATION_TOKENS = 32 * WINDOW
ORDER_TOKENS = 16 * WINDOW  # enough to tell methods apart
CHUNKS = {"at once": [], "in chunks": ["--prefill-chunk", 7], "one by one": ["--prefill-chunk", 1],
          "with drafts": ["--speculate", "automaton"], "with drafts of a corpus": ["--speculate", "corpus"],
          "with all drafts": ["--speculate", "automaton,corpus,lookup"]}


class Reference:
    """onnxruntime over an optimum export with past and present."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.past = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]

    def empty_past(self):
        return [np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for i in self.past]

    def step(self, ids, past):
        length = past[0].shape[2] + len(ids)
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, length), np.int64),
                 "position_ids": np.arange(length - len(ids), length, dtype=np.int64)[None]}
        known = {i.name for i in self.session.get_inputs()}
        feeds = {name: array for name, array in feeds.items() if name in known}
        logits, *present = self.session.run(None, feeds | {i.name: array for i, array in zip(self.past, past)})
        return logits[0], present

    def continuation(self, prompt, count):
        """The greedy continuation, cut before the first token whose margin is too small to hold against anyone."""
        logits, past = self.step(list(prompt), self.empty_past())
        ids = []
        for _ in range(count):
            second, first = np.partition(logits[-1], -2)[-2:]
            if first - second < LEAST_MARGIN:
                break
            ids.append(int(logits[-1].argmax()))
            logits, past = self.step(ids[-1:], past)
        return ids

    def perplexity(self, tokens):
        losses = []
        for begin in range(0, len(tokens) - WINDOW, WINDOW):
            window = tokens[begin:begin + WINDOW + 1].astype(np.int64)
            logits = self.step(list(window[:-1]), self.empty_past())[0].astype(np.float64)
            logits -= logits.max(axis=-1, keepdims=True)
            chosen = logits[np.arange(WINDOW), window[1:]]
            losses.append(np.log(np.exp(logits).sum(axis=-1)) - chosen)
        return float(np.exp(np.mean(losses)))


class Compiled:
    """A model with `flags`; those that ask for a calibration get one on the tokens `calibration`."""

    def __init__(self, path, tools, folder, flags=(), calibration=None):
        self.tools, self.folder = tools, pathlib.Path(folder)
        self.artefact = self.folder / "model.hone"
        statistics = self.folder / "statistics.safetensors"
        if "--calibration" in flags and not statistics.exists():
            np.save(self.folder / "calibration.npy", calibration()[:CALIBRATION_TOKENS])
            suite.run_tool([tools / "hone", "calibrate", path, "--tokens", self.folder / "calibration.npy", "-o", statistics])
        flags = [f"{flag}={statistics}" if flag == "--calibration" else flag for flag in flags]
        suite.run_tool([tools / "hone", "compile", path, *flags, "-o", self.artefact])

    @functools.cached_property
    def corpus(self):
        """Source text in tokens of the example, which are those of the shared folder's models too."""
        path = self.folder / "source.corpus"
        suite.run_tool([self.tools / "hone", "corpus", "build", suite.ROOT / "test", suite.ROOT / "benchmarks", "--tokenizer",
                        EXAMPLE.with_name("tokenizer.json"), "-o", path])
        return path

    def continuation(self, prompt, count, flags):
        if any("corpus" in str(flag) for flag in flags):
            flags = [*flags, "--draft-corpus", self.corpus]
        np.save(self.folder / "prompt.npy", np.asarray(prompt, np.int64))
        suite.run_tool([self.tools / "hone-run", "run", self.artefact, "--tokens", self.folder / "prompt.npy",
                        "--output-tokens", self.folder / "new.npy", "--max-new-tokens", count, "--ignore-end", *flags])
        return np.load(self.folder / "new.npy").tolist()

    def perplexity(self, tokens):
        np.save(self.folder / "tokens.npy", tokens)
        output = suite.run_tool([self.tools / "hone-run", "eval", self.artefact, "--tokens", self.folder / "tokens.npy",
                                 "--window", WINDOW, "--json"])
        return json.loads(output)["perplexity"]


def tokens_of(pattern, count):
    """Source text that every checkout has, through the example's tokenizer."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(EXAMPLE.with_name("tokenizer.json")))
    text = "\n".join(path.read_text() for path in sorted(suite.ROOT.glob(pattern)))
    return np.array(tokenizer.encode(text).ids[:count], np.int32)


def example_tokens():
    return tokens_of("test/differential/*.py", ORDER_TOKENS + 1)


def example_calibration():
    """Other text than that of the perplexities."""
    return tokens_of("benchmarks/**/*.py", CALIBRATION_TOKENS)


def expected_of_example():
    reference, tokens = Reference(EXAMPLE), example_tokens()
    starts = np.linspace(0, len(tokens) - PROMPT_LENGTH, PROMPTS).astype(int)
    prompts = [tokens[start:start + PROMPT_LENGTH] for start in starts]
    pairs = [(prompt, reference.continuation(prompt, NEW_TOKENS)) for prompt in prompts]
    return pairs, tokens, reference.perplexity(tokens)


def stored_expectation(lm, name):
    """PyTorch's continuations and perplexity, in f32; a continuation is cut where it was a close call."""
    prompts = json.loads((lm / "prompts.json").read_text())["prompts"]
    pairs = [(prompt["ids"], prompt[name]["ids"]) for prompt in prompts
             if prompt[name]["smallest_margin"] >= LEAST_MARGIN]
    perplexity = json.loads((lm / "reference.json").read_text())["models"][name]["perplexity"]
    return pairs, np.load(lm / "eval_tokens.npy"), perplexity


def expected_of_beginning(path, tokens):
    """For forms, which are compared with the same model in f32: fewer tokens tell as much."""
    tokens = tokens[:ORDER_TOKENS + 1]
    return [], tokens, Reference(path).perplexity(tokens)


def check_perplexity(model, tokens, perplexity, tolerance):
    got = model.perplexity(tokens)
    if abs(got / perplexity - 1) > tolerance:
        raise suite.Failure(f"expected perplexity {perplexity:.4f} within {tolerance:.1%}, but got {got:.4f}")


def check_form(path, expected, calibration, flags, tools):
    _, tokens, perplexity = expected()
    with tempfile.TemporaryDirectory() as folder:
        check_perplexity(Compiled(path, tools, folder, flags, calibration), tokens, perplexity, FORMS[flags])


def check_order(path, expected, calibration, order, tools):
    tokens = expected()[1][:ORDER_TOKENS + 1]
    with tempfile.TemporaryDirectory() as folder:
        got = [Compiled(path, tools, folder, flags, calibration).perplexity(tokens) for flags in order]
    if got != sorted(got):
        raise suite.Failure("expected perplexities from the best to the worst, but got " + ", ".join(f"{p:.4f}" for p in got))


def check(path, expected, manners, tools):
    pairs, tokens, perplexity = expected()
    with tempfile.TemporaryDirectory() as folder:
        model = Compiled(path, tools, folder)
        for manner in manners:
            flags = CHUNKS[manner]
            for number, (prompt, ids) in enumerate(pairs):
                got = model.continuation(prompt, len(ids), flags) if ids else []
                if got != ids:
                    at = next((i for i, (a, b) in enumerate(zip(got, ids)) if a != b), min(len(got), len(ids)))
                    raise suite.Failure(f"prompt {number} {manner}: token {at} is {got[at:at + 1]}, expected {ids[at]}")
        check_perplexity(model, tokens, perplexity, PERPLEXITY_TOLERANCE)


def forms(name, path, expected, calibration):
    for flags in FORMS:
        yield f"{name} {' '.join(flags)}", functools.partial(check_form, path, expected, calibration, flags)
    for order in ORDERS:
        yield f"{name} methods of {order[0][0]}", functools.partial(check_order, path, expected, calibration, order)


def cases():
    yield "examples/python-lm", functools.partial(check, EXAMPLE, expected_of_example, CHUNKS)
    yield from forms("examples/python-lm", EXAMPLE, functools.cache(expected_of_example), example_calibration)
    if shared := suite.shared_models():
        lm = shared / "lm"
        for path in sorted(lm.glob("*/*/model.onnx")):
            model, exporter = path.parent.parent.name, path.parent.name
            if "int4" not in exporter:  # other weights than the reference's
                expected = functools.partial(stored_expectation, lm, model)
                manners = CHUNKS if (model, exporter) == ("target", "optimum") else ["at once", "with all drafts"]
                yield f"{model}/{exporter}", functools.partial(check, path, expected, manners)
                if path == lm / "target" / "optimum" / "model.onnx":
                    calibration = functools.partial(np.load, lm / "valid.tokens.npy")
                    beginning = functools.cache(functools.partial(expected_of_beginning, path, np.load(lm / "eval_tokens.npy")))
                    yield from forms(f"{model}/{exporter}", path, beginning, calibration)


sys.exit(suite.run_main(__doc__, cases()))
