# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts that are written with draft models, against those that are written without.

The model of examples/ drafts for itself, in narrower forms and with all its logits negated, which is always wrong. Where the shared
folder exists, its larger model is the target too, and the smaller one its draft.
"""

import functools
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx

import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
PROMPTS, PROMPT_LENGTH, NEW_TOKENS = 20, 32, 64
SAMPLED = ["--temperature", 0.8, "--top-p", 0.95, "--repetition-penalty", 1.1, "--seed", 5]
MANNERS = {"greedy": [], "sampled": SAMPLED}
# As many as are allowed are drafted and verified, whatever they take, and greedy texts are the same by this rule.
WHOLE_DRAFTS = ["--accept", "exact", "--draft-confidence", 0]
DRAFTED = 4
# Forms of a model that draft for it, and tokens a pass of greedy texts that they have to give at least: 5 if all were accepted. On the
# example, int8 gives 4.72, int3 3.09 and 2:4 2.60; which of two close tokens is likelier can be another on other machines.
FORMS = {("--quantize=int8",): 4.5, ("--quantize=int3", "--group=32"): 2.7, ("--prune=2:4",): 2.3}


def compile_model(tools, path, output, *flags):
    suite.run_tool([tools / "hone", "compile", path, f"--tokenizer={EXAMPLE.with_name('tokenizer.json')}", *flags, "-o", output])
    return output


def negated(path, output):
    """The model with all logits negated: what is least likely is drafted."""
    model = onnx.load(path)
    logits = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = ["before_negation" if name == logits else name for name in node.output]
        node.input[:] = ["before_negation" if name == logits else name for name in node.input]
    model.graph.node.append(onnx.helper.make_node("Neg", ["before_negation"], [logits]))
    onnx.save(model, output)
    return output


class Writer:
    """Writes on from the same prompts with a target."""

    def __init__(self, tools, folder, target, prompts):
        self.tools, self.folder, self.target = tools, folder, target
        np.save(folder / "prompts.npy", np.asarray(prompts, np.int64))

    def write(self, *flags):
        """Texts, and of each the passes, the accepted tokens and the drafted ones."""
        output = self.folder / "new.npy"
        told = suite.run_tool([self.tools / "hone-run", "run", self.target, "--tokens", self.folder / "prompts.npy", "--output-tokens", output,
                               "--max-new-tokens", NEW_TOKENS, "--ignore-end", "--stats", *flags], stream="stderr")
        counts = re.findall(r"(\d+) passes, [0-9.]+ tokens a pass, (\d+) of (\d+) drafted", told)
        return np.load(output), np.array(counts, int)

    def check(self, draft, flags):
        """With these drafts texts are the same; passes, accepted and drafted tokens of all."""
        return self.check_drafts(["--draft", draft], flags)

    def check_drafts(self, where, flags):
        """The same with drafts that `where` names."""
        drafts = ["--speculate", "model", *where, "--draft-tokens", DRAFTED, *flags]
        for manner, sampling in MANNERS.items():
            if sampling and "exact" in flags:  # has the same probabilities, but another text
                continue
            (plain, _), (texts, counts) = self.write(*sampling), self.write(*drafts, *sampling)
            if not np.array_equal(plain, texts):
                row, token = np.argwhere(plain != texts)[0]
                raise suite.Failure(f"{manner} prompt {row}: token {token} is {texts[row, token]}, expected {plain[row, token]}")
        return counts


def expect_tokens_a_pass(counts, least, most=DRAFTED + 1):
    tokens = NEW_TOKENS - 1
    for row, passes in enumerate(counts[:, 0]):
        if not -(-tokens // most) <= passes <= tokens:
            raise suite.Failure(f"prompt {row}: {passes} passes for {tokens} tokens")
    got = tokens * len(counts) / counts[:, 0].sum()
    if got < least:
        raise suite.Failure(f"expected {least} tokens a pass at least, but got {got:.2f}")


def example_prompts():
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(EXAMPLE.with_name("tokenizer.json")))
    text = "\n".join(path.read_text() for path in sorted((suite.ROOT / "scripts").glob("**/*.py")))
    ids = tokenizer.encode(text).ids
    return [ids[start:start + PROMPT_LENGTH] for start in np.linspace(0, len(ids) - PROMPT_LENGTH, PROMPTS).astype(int)]


def in_folder(check):
    """The check, with a folder that is removed afterwards."""
    def run(tools):
        with tempfile.TemporaryDirectory() as folder:
            check(tools, pathlib.Path(folder))
    return run


def check_forms(tools, folder):
    target = compile_model(tools, EXAMPLE, folder / "target.hone")
    writer = Writer(tools, folder, target, example_prompts())
    for flags, least in FORMS.items():
        draft = compile_model(tools, EXAMPLE, folder / f"draft{len(flags)}{flags[0][-3:].replace(':', '')}.hone", *flags)
        writer.check(draft, [])
        expect_tokens_a_pass(writer.check(draft, WHOLE_DRAFTS), least)


def check_one_artefact(tools, folder):
    """Target and draft in one artefact, the latter in every form; what both have alike is stored once."""
    alone = compile_model(tools, EXAMPLE, folder / "target.hone")
    size = (alone / "weights.safetensors").stat().st_size
    prompts = example_prompts()
    for form, least in {"int8": 4.5, "int4": 3.3, "int3": 2.5, "2:4": 2.3}.items():
        both = compile_model(tools, EXAMPLE, folder / f"{form.replace(':', '')}.hone", f"--draft=self:{form}")
        if (both / "weights.safetensors").stat().st_size > 1.5 * size:
            raise suite.Failure(f"{form}: expected at most half as many weights beside the model's")
        writer = Writer(tools, folder, both, prompts)
        writer.check_drafts([], [])
        expect_tokens_a_pass(writer.check_drafts([], WHOLE_DRAFTS), least)


def check_oracle(tools, folder):
    target = compile_model(tools, EXAMPLE, folder / "target.hone")
    counts = Writer(tools, folder, target, example_prompts()).check(target, WHOLE_DRAFTS)
    expected = -(-(NEW_TOKENS - 1) // (DRAFTED + 1))
    if not (counts[:, 0] == expected).all() or not (counts[:, 1] == counts[:, 2]).all():
        raise suite.Failure(f"expected {expected} passes and no refusal, but got {counts.tolist()}")


def check_wrong(tools, folder):
    target = compile_model(tools, EXAMPLE, folder / "target.hone")
    draft = compile_model(tools, negated(EXAMPLE, folder / "negated.onnx"), folder / "wrong.hone")
    writer = Writer(tools, folder, target, example_prompts())
    for flags in [], WHOLE_DRAFTS:
        counts = writer.check(draft, flags)
        if counts[:, 1].any() or not counts[:, 2].any():
            raise suite.Failure(f"expected drafts without an accepted token, but got {counts.tolist()}")


def check_pair(lm, tools, folder):
    target = compile_model(tools, lm / "target" / "optimum" / "model.onnx", folder / "target.hone")
    draft = compile_model(tools, lm / "draft" / "optimum" / "model.onnx", folder / "draft.hone")
    prompts = [prompt["ids"] for prompt in json.loads((lm / "prompts.json").read_text())["prompts"]]
    writer = Writer(tools, folder, target, prompts)
    writer.check(draft, [])
    both = compile_model(tools, lm / "target" / "optimum" / "model.onnx", folder / "both.hone", f"--draft={lm / 'draft' / 'optimum' / 'model.onnx'}")
    expect_tokens_a_pass(Writer(tools, folder, both, prompts).check_drafts([], WHOLE_DRAFTS), 2.2)
    # PyTorch gives 2.52 along twice as long texts (reference.json), which repeat themselves more; along these it is 2.39.
    expect_tokens_a_pass(writer.check(draft, WHOLE_DRAFTS), 2.2)


def cases():
    yield "examples/python-lm drafts for itself in other forms", in_folder(check_forms)
    yield "examples/python-lm drafts for itself in one artefact", in_folder(check_one_artefact)
    yield "examples/python-lm drafts for itself", in_folder(check_oracle)
    yield "examples/python-lm, its logits negated, drafts for itself", in_folder(check_wrong)
    if shared := suite.shared_models():
        yield "the trained draft and target", in_folder(functools.partial(check_pair, shared / "lm"))


sys.exit(suite.run_main(__doc__, cases()))
