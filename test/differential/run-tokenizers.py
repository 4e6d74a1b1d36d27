# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares hone-tokenize with PyPI's `tokenizers`, token for token and text for text, over tokenizers of every family."""

import argparse
import json
import math
import multiprocessing
import operator
import os
import random
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer  # noqa: E402

import tokenizer_corpus  # noqa: E402
import tokenizer_zoo  # noqa: E402

MAIN_FAMILIES = ("shared-lm", "gpt2", "llama3", "qwen2", "deepseek-coder", "deepseek-v3", "llama2-old", "llama2-first")


class Difference(Exception):
    pass


def run_tool(tool, path, flags, data):
    result = subprocess.run([tool, path, *flags, "--stats"], input=data, capture_output=True)
    if result.returncode != 0:
        raise Difference(f"{flags}: exit {result.returncode}: {result.stderr.decode(errors='replace')}")
    return result.stdout, result.stderr.decode()


def tool_encode(tool, path, documents, special):
    flags = [] if special else ["--no-special"]
    output, stats = run_tool(tool, path, flags, "\0".join(documents).encode() + b"\0")
    lines = output.decode().split("\n")[:-1]
    return [[int(word) for word in line.split()] for line in lines], stats.split(",")[-1].strip()


def tool_decode(tool, path, sequences, skip_special):
    flags = ["--decode"] + (["--no-special"] if skip_special else [])
    lines = "".join(" ".join(map(str, ids)) + "\n" for ids in sequences)
    output, _ = run_tool(tool, path, flags, lines.encode())
    return output.decode().split("\0")[:-1]


def compare(what, inputs, expected, actual, alike=operator.eq):
    """Shows the shortest input on which the two differ, around the first place where they do."""
    if len(expected) != len(actual):
        raise Difference(f"{what}: {len(expected)} inputs, {len(actual)} outputs")
    differing = [i for i in range(len(inputs)) if not alike(expected[i], actual[i])]
    if not differing:
        return
    i = min(differing, key=lambda i: len(inputs[i]))
    common = os.path.commonprefix([expected[i], actual[i]])
    window = slice(max(0, len(common) - 5), len(common) + 10)
    raise Difference(f"{what} differs in {len(differing)} of {len(inputs)} inputs, such as {inputs[i][:300]!r} at "
                     f"{len(common)}:\n  expected {expected[i][window]!r}\n  got      {actual[i][window]!r}")


def random_sequences(rng, size, count=300):
    """Ids in no order that text has: half characters, special tokens, ids that do not exist."""
    return [[rng.randrange(size + 20) for _ in range(rng.randint(1, 60))] for _ in range(count)]


def likeness(path, tokenizer):
    """Whether two encodings of one text are equal. Those of a unigram model may fall either way where their scores tie, as "_" and
    "__" in either order do: the reference reads the scores of the file to the last bit but one."""
    with open(path, encoding="utf-8") as file:
        model = json.load(file)["model"]
    if model.get("type") != "Unigram":
        return operator.eq
    scores = dict(enumerate(score for _, score in model["vocab"]))

    def alike(a, b):
        if a == b:
            return True
        sums = [math.fsum(scores.get(token, 0.0) for token in ids) for ids in (a, b)]
        texts = ["".join(map(tokenizer.id_to_token, ids)) for ids in (a, b)]
        return math.isclose(*sums, rel_tol=1e-12) and texts[0] == texts[1]
    return alike


def check_encoding(tool, path, tokenizer, documents):
    alike = likeness(path, tokenizer)
    for special in (True, False):
        expected = [tokenizer.encode(text, add_special_tokens=special).ids for text in documents]
        actual, speed = tool_encode(tool, path, documents, special)
        compare(f"encoding (special tokens: {special})", documents, expected, actual, alike)
    return expected, speed


def check_decoding(tool, path, tokenizer, sequences):
    sequences = [ids for ids in sequences if ids and "\0" not in tokenizer.decode(ids)]  # NUL separates the output
    for skip in (True, False):
        texts = [tokenizer.decode(ids, skip_special_tokens=skip) for ids in sequences]
        compare(f"decoding (without special tokens: {skip})", sequences, texts, tool_decode(tool, path, sequences, skip))


def reference_speed(tokenizer, documents):
    """In processor time, on one thread, without offsets, with caches that are warm."""
    start = time.process_time()
    tokenizer.encode_batch_fast(documents)
    return sum(len(text.encode()) for text in documents) / 1e6 / (time.process_time() - start)


def check(tool, name, path, documents):
    """One line that says what was compared, and whether all was equal."""
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        ids, speed = check_encoding(tool, path, tokenizer, documents)
        check_decoding(tool, path, tokenizer, ids + random_sequences(random.Random(name), tokenizer.get_vocab_size()))
    except Difference as difference:
        return f"{name}: {difference}", False
    reference = reference_speed(tokenizer, documents)
    return f"{name}: {sum(map(len, ids))} tokens equal; {speed}, tokenizers {reference:.1f} MB/s", True


def saved_tokenizers(folder, only):
    """Names and paths of the tokenizers, made one by one; the trained language model's where it exists."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    shared = os.path.join(os.environ.get("HONE_SHARED", os.path.join(root, "shared")), "models", "lm", "tokenizer.json")
    if os.path.exists(shared):
        yield "shared-lm", shared
    for name, tokenizer in tokenizer_zoo.all_tokenizers(tokenizer_corpus.documents(500_000, seed=7)):
        if only in name:
            path = os.path.join(folder, name + ".json")
            tokenizer.save(path)
            yield name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=2, help="text for the main families; the others get a tenth")
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    tool = os.path.join(options.build, "bin", "hone-tokenize")
    documents = tokenizer_corpus.documents(int(options.megabytes * 1e6), sprinkle=tokenizer_zoo.ADDED)
    random.Random(1).shuffle(documents)
    everything = tokenizer_corpus.TRICKY + documents
    few = everything[: len(everything) // 10]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(options.jobs) as pool:
        pending = [pool.apply_async(check, (tool, name, path, everything if name in MAIN_FAMILIES else few))
                   for name, path in saved_tokenizers(folder, options.only)]
        for job in pending:
            line, equal = job.get()
            print(line, flush=True)
            passed, failed = passed + equal, failed + (not equal)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
