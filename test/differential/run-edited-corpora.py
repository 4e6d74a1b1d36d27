# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Corpora that somebody has edited: a run writes the same text as without drafts, or says in one sentence what is wrong.

Headers have the checksum that belongs to them, so that what is looked at lies after it. Bodies have other bytes, which nothing checks when a
corpus is loaded: the drafts are others, and the text is the same.
"""

import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import suite

MODEL = suite.ROOT / "examples" / "python-lm" / "model.onnx"
TOKENIZER = MODEL.with_name("tokenizer.json")
PROMPT = "def read(path):\n    with open(path) as file:\n"
NEW_TOKENS = 24
TIMEOUT_SECONDS = 300
# The header: name, offset, format. What else it holds is the checksum of all fields before it.
FIELDS = {"version": (8, "<I"), "token bytes": (12, "<I"), "tokenizer": (16, "<Q"), "vocabulary": (24, "<Q"), "size": (32, "<Q"),
          "texts": (40, "<Q"), "long lengths": (48, "<Q"), "body's checksum": (56, "<I")}
CHECKSUM, HEADER_BYTES = 60, 64
VALUES = [0, 1, 2, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]
BODY_EDITS = 60


def with_field(corpus, name, value):
    offset, form = FIELDS[name]
    edited = bytearray(corpus)
    struct.pack_into(form, edited, offset, value % 2**(8 * struct.calcsize(form)))
    struct.pack_into("<I", edited, CHECKSUM, zlib.crc32(edited[:CHECKSUM]))
    return bytes(edited)


def with_noise(corpus, seed):
    """Other bytes after the header: a run of them, or here and there; all alike, or at random."""
    chance, edited = random.Random(seed), bytearray(corpus)
    places = range(HEADER_BYTES, len(edited))
    if seed % 2:
        begin = chance.choice(places)
        places = places[begin - HEADER_BYTES:][:chance.randrange(1, len(edited))]
    else:
        places = chance.sample(places, min(len(places), chance.choice([1, 10, 1000, 100000])))
    alike = chance.choice([None, 0, 255])
    for place in places:
        edited[place] = chance.randrange(256) if alike is None else alike
    return bytes(edited)


def edits_of(corpus):
    """(name, bytes, a word of the message or None where both are right)"""
    yield "as it is", corpus, None
    for size in 0, 7, 8, HEADER_BYTES - 1, HEADER_BYTES, len(corpus) // 2, len(corpus) - 1:
        yield f"cut to {size}", corpus[:size], "bytes" if size >= HEADER_BYTES else "not a corpus"
    yield "longer", corpus + b"\0", "bytes"
    yield "other magic", b"X" + corpus[1:], "not a corpus"
    yield "other checksum", corpus[:CHECKSUM] + b"\0\0\0\0" + corpus[HEADER_BYTES:], "CRC-32"
    yield "other version", with_field(corpus, "version", 2), "of version 2"
    yield "other tokenizer", with_field(corpus, "tokenizer", 1), "expected a corpus of the tokenizer"
    for name in FIELDS:
        for value in VALUES:
            yield f"{name} {value}", with_field(corpus, name, value), None
    for seed in range(BODY_EDITS):
        yield f"noise {seed}", with_noise(corpus, seed), None


class Runs:
    """Runs a model with a corpus, and compares with what it writes without."""

    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.model = folder / "model.hone"
        suite.run_tool([tools / "hone", "compile", MODEL, "--tokenizer", TOKENIZER, "-o", self.model, "--quiet"])
        self.plain = self.run([]).stdout

    def run(self, flags):
        words = [self.tools / "hone-run", "run", self.model, "--prompt", PROMPT, "--max-new-tokens", NEW_TOKENS, "--threads=1", *flags]
        try:
            return subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise suite.Failure(f"no end in {TIMEOUT_SECONDS} s") from None

    def check(self, edit):
        name, data, word = edit
        path = self.folder / f"{name.replace(' ', '-')}.corpus"
        path.write_bytes(data)
        result = self.run(["--speculate=automaton,corpus", "--draft-corpus", path])
        os.remove(path)
        if result.returncode not in (0, 1) or "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
            raise suite.Failure(f"ended with {result.returncode}: {suite.one_line(result.stderr)}")
        if result.returncode == 0 and result.stdout != self.plain:
            raise suite.Failure("another text than without drafts")
        if result.returncode == 1 and len(result.stderr.splitlines()) != 1:
            raise suite.Failure(f"failed with {len(result.stderr.splitlines())} sentences: {result.stderr[:600]}")
        if word and (result.returncode == 0 or word not in result.stderr):
            raise suite.Failure(f"expected a message with '{word}', but got {suite.one_line(result.stderr)}")
        if name == "as it is" and result.returncode != 0:
            raise suite.Failure(suite.one_line(result.stderr))


def main():
    options = suite.parser(__doc__).parse_args()
    tools = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as name:
        runs, path = Runs(tools, pathlib.Path(name)), pathlib.Path(name) / "made.corpus"
        suite.run_tool([tools / "hone", "corpus", "build", suite.ROOT / "test" / "differential", "--tokenizer", TOKENIZER, "-o", path])
        cases = [(edit[0], edit) for edit in edits_of(path.read_bytes()) if options.only in edit[0]]
        return suite.run_all(cases, runs.check, options.jobs)


sys.exit(main())
