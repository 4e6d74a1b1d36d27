#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Needles at every depth of a text (needles.py), and what patterns of attention make of them, on the example's language model: a pattern that
sees all keys gives the logits of dense attention, and one that cannot see the needle gives others. What models are trained on to find them
has each piece before its repetition.
"""

import pathlib
import tempfile

import numpy as np

import needles
import runtime
import suite

MODEL = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python-lm" / "model.onnx"
LENGTH, VOCABULARY, DEPTHS = 240, 2048, (0.0, 0.5, 1.0)
# Keys are added up in another order than without lists: what that is in logits of this model, whose largest are around 10.
TOLERANCE = 1e-3
ALL = {"sinks-window": ["--attention=sinks-window", "--attention-window=256"],
       "top-blocks": ["--attention=top-blocks", "--attention-sinks=0", "--attention-window=128", "--attention-blocks=8"]}
# The last 64 to 127 keys: but for the needle just before the question, none.
BLIND = ["--attention=sinks-window", "--attention-sinks=0", "--attention-window=1"]


def logits_of(tools, library, folder, flags, tasks):
    artefact = folder / f"{len(list(folder.iterdir()))}.hone"  # one path is one program, while it is loaded
    suite.run_tool([tools / "hone", "compile", MODEL, *flags, "-o", artefact, "--quiet"])
    module, found = runtime.Module(library, artefact), []
    names = module.names("forward", runtime.INPUT)
    for task in tasks:
        ids = task.tokens[None]
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None]}
        found.append(runtime.Session(module).forward({name: arrays[name] for name in names}, "logits")[0])
    return found


def make_tasks():
    return needles.make(np.random.default_rng(1).integers(2, VOCABULARY, 1000), LENGTH, DEPTHS, 2, VOCABULARY)


def check_tasks():
    """Each has a needle at its depth and again at its end, but for the last token of the answer."""
    size = needles.CUE + needles.ANSWER
    for task in make_tasks():
        at = round(task.depth * (LENGTH + 1 - 2 * size))
        needle = task.tokens[at:at + size]
        if len(task.tokens) != LENGTH or not np.array_equal(task.tokens[-size + 1:], needle[:-1]) or not np.array_equal(task.answer, needle[needles.CUE:]):
            raise suite.Failure(f"expected a needle at {at} and at the end of {task}")
        right = np.zeros((LENGTH, VOCABULARY))
        right[np.arange(LENGTH - needles.ANSWER, LENGTH), task.answer] = 1
        if needles.recall(task, right) != 1 or needles.recall(task, -right) != 0:
            raise suite.Failure("expected the recall of the right answer to be 1, and that of the others 0")


def find(tokens, piece):
    """Where the piece begins in the tokens; none of it comes twice."""
    return [int(at) for at in np.flatnonzero(tokens == piece[0]) if np.array_equal(tokens[at:at + len(piece)], piece)]


def check_chains():
    """Each piece of a chain comes before the next one, and all of it at the end, but for the last token of the answer."""
    haystack, cue = np.zeros(1000, np.int64), needles.CUE
    for hops in (2, 3):
        for task in needles.make_chains(haystack, LENGTH, hops, 5, VOCABULARY):
            whole = np.append(task.tokens[1 - cue * (hops + 1):], task.answer[-1])
            places = [find(task.tokens, whole[cue * i:cue * (i + 2)])[0] for i in range(hops)]
            if len(task.tokens) != LENGTH or places != sorted(places) or not np.array_equal(task.answer, whole[2 * cue:]):
                raise suite.Failure(f"expected a chain of {hops} hops, but got {task}")
            if places[0] != round(task.depth * (LENGTH + 1 - cue * (3 * hops + 1))):
                raise suite.Failure(f"expected the first piece at {task.depth}, but it is at {places[0]}")


def check_training():
    """Needles come twice in a window, chains in pieces; a quarter of the windows has none, and the haystack is all there, in its order."""
    window, count = 300, 40
    haystack = np.arange(VOCABULARY, VOCABULARY + 20000)
    tokens = needles.training_text(haystack, window, count, 3, VOCABULARY)
    straw = tokens[tokens >= VOCABULARY]
    windows = tokens[:-1].reshape(count, window)
    plain = sum((one >= VOCABULARY).all() for one in windows)
    if len(tokens) != window * count + 1 or not np.array_equal(straw, haystack[:len(straw)]) or not count / 8 < plain < count / 2:
        raise suite.Failure(f"expected the haystack with needles in most of {count} windows, but {plain} have none")
    for one in windows:
        values, counts = np.unique(one[one < VOCABULARY], return_counts=True)
        if (counts < 2).any():
            raise suite.Failure(f"expected tokens of needles to come again, but {values[counts < 2]} do not")
    for text, most, message in [(haystack, 10, "windows"), (haystack[:100], 1, "a text")]:
        try:
            needles.training_text(text, window, count, most, VOCABULARY)
        except ValueError as error:
            if message not in str(error):
                raise
        else:
            raise suite.Failure(f"expected {message} to be too short")


def check_all(tools, library, name):
    with tempfile.TemporaryDirectory() as folder:
        tasks = make_tasks()
        dense = logits_of(tools, library, pathlib.Path(folder), [], tasks)
        for task, wanted, found in zip(tasks, dense, logits_of(tools, library, pathlib.Path(folder), ALL[name], tasks)):
            difference = np.abs(wanted - found).max()
            if not difference <= TOLERANCE:
                raise suite.Failure(f"depth {task.depth}: expected the logits of dense attention, but they differ by {difference}")


def check_blind(tools, library):
    with tempfile.TemporaryDirectory() as folder:
        tasks = make_tasks()
        dense = logits_of(tools, library, pathlib.Path(folder), [], tasks)
        for task, seen, found in zip(tasks, dense, logits_of(tools, library, pathlib.Path(folder), BLIND, tasks)):
            if task.depth < 1 and not np.abs(seen[-needles.ANSWER:] - found[-needles.ANSWER:]).max() > 10 * TOLERANCE:
                raise suite.Failure(f"depth {task.depth}: expected other logits without the needle")


def main():
    options = suite.parser(__doc__).parse_args()
    tools, library = options.build.resolve() / "bin", options.build.resolve() / "lib" / "libhone_rt.so"
    cases = [("tasks", check_tasks), ("chains", check_chains), ("training", check_training), ("blind", lambda: check_blind(tools, library))]
    cases += [(name, lambda name=name: check_all(tools, library, name)) for name in ALL]
    return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
