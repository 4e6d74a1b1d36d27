# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Greedy texts of a trained model with drafts, chains and trees, one and three at once, against those of plain decoding: token by token the
same, for every form of the weights and of the cache.

Prompts are pieces of Python's own standard library, which every machine has. `--prompts 1000 --tokens 128` is the whole; `--model shared`
takes the larger model of the shared folder, and its draft model, in place of that of examples/.
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import sys
import sysconfig
import tempfile

import numpy as np

import runtime
import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
FORMS = {"f32": [], "bf16": ["--weights=bf16"], "int8": ["--quantize=int8"], "int4": ["--quantize=int4"], "2:4": ["--prune=2:4"],
         "KV bf16": ["--kv-cache=bf16"], "KV int8": ["--kv-cache=int8"], "KV int4": ["--kv-cache=int4"]}
SHAPES = {"chains": [], "trees": ["--draft-tree"]}
PROMPT_LENGTH = 48
CORPUS_FILES = 40  # of the library; prompts are of all of it
MOST_PROMPTS = 200  # of a process, which is to end in time
# As many tokens as are allowed are drafted and verified, whatever passes take, and greedy texts are the same by this rule.
WHOLE = ["--accept", "exact", "--draft-confidence", 0, "--draft-tokens", 8]


@dataclasses.dataclass
class Trained:
    """A target, what the draft model is made of, and their tokenizer."""
    target: pathlib.Path
    draft: list
    tokenizer: pathlib.Path


def trained_model(name):
    if name == "example":
        return Trained(EXAMPLE, [EXAMPLE, "--quantize=int3", "--group=32"], EXAMPLE.with_name("tokenizer.json"))
    lm = suite.shared_models() / "lm"
    return Trained(lm / "target" / "optimum" / "model.onnx", [lm / "draft" / "optimum" / "model.onnx"], lm / "tokenizer.json")


def library_files():
    return sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))


def library_prompts(tokenizer, count):
    from tokenizers import Tokenizer
    known = Tokenizer.from_file(str(tokenizer))
    ids = np.concatenate([encoding.ids for encoding in known.encode_batch([path.read_text(encoding="utf-8") for path in library_files()])])
    return np.array([ids[start:start + PROMPT_LENGTH] for start in np.linspace(0, len(ids) - PROMPT_LENGTH, count).astype(int)], np.int64)


class Setting:
    """What all forms share: the tools, the model, the draft model, the corpus and the prompts."""

    def __init__(self, build, folder, trained, options):
        self.tools, self.library, self.trained, self.tokens = build / "bin", build / "lib" / "libhone_rt.so", trained, options.tokens
        self.prompts = library_prompts(trained.tokenizer, options.prompts)
        self.draft = self.compile(folder / "draft.hone", *trained.draft, "--speculate=tree", f"--tokenizer={trained.tokenizer}")
        self.corpus = folder / "library.corpus"
        suite.run_tool([self.tools / "hone", "corpus", "build", *library_files()[:CORPUS_FILES], "--tokenizer", trained.tokenizer, "-o",
                        self.corpus])

    def compile(self, output, path, *flags):
        suite.run_tool([self.tools / "hone", "compile", path, *flags, "--quiet", "-o", output])
        return output

    def drafters(self):
        """Options by the name of the drafter."""
        corpus, model = ["--draft-corpus", self.corpus], ["--speculate", "model", "--draft", self.draft]
        return {"automaton": ["--speculate", "automaton"],
                "lookup": ["--speculate", "lookup"],
                "corpus": ["--speculate", "corpus", *corpus],
                "several": ["--speculate", "automaton,corpus,lookup", *corpus],
                "draft model": model,
                "draft model, whole drafts": [*model, *WHOLE],
                "self:int4": ["--speculate", "model"],
                "self:int4, whole drafts": ["--speculate", "model", *WHOLE]}


class Form:
    """The artefacts of a form of the model, and the texts of plain decoding."""

    def __init__(self, setting, folder, flags):
        self.setting, self.folder, self.flags, self.prompts, self.tokens = setting, folder, flags, setting.prompts, setting.tokens
        trained = setting.trained
        self.plain = setting.compile(folder / "plain.hone", trained.target, *flags)
        self.drafted = setting.compile(folder / "drafted.hone", trained.target, *flags, "--speculate=tree,batch", "--draft=self:int4",
                                    f"--tokenizer={trained.tokenizer}")
        np.save(folder / "one.npy", self.prompts[0])
        self.expected, _ = self.write(self.plain)
        self.expectedState = self.state([])

    def write(self, artefact, *options):
        """Texts, and how many drafted tokens were accepted and verified."""
        texts, counts = [], np.zeros(2, int)
        for first in range(0, len(self.prompts), MOST_PROMPTS):
            np.save(self.folder / "prompts.npy", self.prompts[first:first + MOST_PROMPTS])
            told = self.run(artefact, "prompts.npy", "--stats", *options)
            texts.append(np.load(self.folder / "new.npy").reshape(-1, self.tokens))
            counts += np.array(re.findall(r"(\d+) of (\d+) drafted tokens accepted", told), int).reshape(-1, 2).sum(axis=0)
        return np.concatenate(texts), counts

    def run(self, artefact, prompts, *options):
        """Writes new.npy; what the tool says meanwhile."""
        return suite.run_tool([self.setting.tools / "hone-run", "run", artefact, "--tokens", self.folder / prompts, "--output-tokens",
                               self.folder / "new.npy", "--max-new-tokens", self.tokens, "--ignore-end", *options], stream="stderr")

    def lead(self, row, token):
        """How much likelier the token of a text is by plain decoding than the next one, in logits."""
        module = runtime.Module(self.setting.library, self.plain)
        session = runtime.Session(module)
        text = [*self.prompts[row], *self.expected[row, :token]]
        logits = session.forward({module.names("forward", runtime.INPUT)[0]: np.array([text], np.int64)}, "logits")[0, -1]
        session.close()
        module.close()
        best, second = np.sort(logits)[:-3:-1]
        return best - second

    def state(self, options):
        """The saved state of a session after the first text: nothing is left in it of what drafts appended and verification refused."""
        saved = self.folder / "saved.state"
        self.run(self.drafted, "one.npy", "--prompt-cache", saved, *options)
        content = saved.read_bytes()
        saved.unlink()
        return content

    def isExact(self, options):
        """Whether a single text leaves the same bits."""
        isRounded = self.flags == FORMS["bf16"] or (self.flags == FORMS["KV bf16"] and "--draft-tree" in options)
        return "--batch" not in options and not (isRounded and suite.has_tiles())

    def check(self, options):
        """With these options texts are the same, and the state; counts of drafted tokens."""
        texts, counts = self.write(self.drafted, *options)
        if self.isExact(options) and self.state(options) != self.expectedState:
            raise suite.Failure("the saved state after the first text differs from that after plain decoding")
        different = np.argwhere(texts != self.expected)
        if not len(different):
            return counts
        row, token = different[0]
        raise suite.Failure(f"{len(set(different[:, 0]))} of {len(texts)} texts differ: token {token} of text {row} is {texts[row, token]}, expected "
                            f"{self.expected[row, token]}, which is likelier than others by {self.lead(row, token):.3g}")


def check_form(setting, name, options):
    """Prints a line for each drafter; how many passed and failed."""
    passed = failed = drafted = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        cases = {f"{name}, {drafter}, {shape}, {batch} at once": [*flags, *ofShape, *(["--batch", batch] if batch > 1 else [])]
                 for drafter, flags in setting.drafters().items() for shape, ofShape in SHAPES.items() for batch in (1, 3)}
        cases = {case: flags for case, flags in cases.items() if options.only in case}
        if not cases:
            return 0, 0
        form = Form(setting, folder, FORMS[name])
        for case, flags in cases.items():
            try:
                accepted, verified = form.check(flags)
                drafted += verified
                passed += 1
                print(f"{case}: {options.prompts} texts of {options.tokens} tokens as by plain decoding, {accepted} of {verified} drafted tokens "
                      "accepted", flush=True)
            except suite.Failure as failure:
                failed += 1
                print(f"{case}: {failure}", flush=True)
    if passed and not drafted:
        failed += 1
        print(f"{name}: expected drafts, but none were verified", flush=True)
    return passed, failed


def main():
    parser = suite.parser(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--model", choices=["example", "shared"], default="example")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        setting = Setting(options.build.resolve(), pathlib.Path(folder), trained_model(options.model), options)
        counts = list(pool.map(lambda name: check_form(setting, name, options), FORMS))
    return suite.finish(sum(passed for passed, _ in counts), sum(failed for _, failed in counts))


if __name__ == "__main__":
    sys.exit(main())
