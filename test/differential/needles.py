# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Needles in a haystack: texts with a few tokens of no meaning at some depth, whose beginning is repeated at the end. A model that attends
to them goes on as they did. Chains of them are what RULER (arXiv 2404.06654) calls variable tracking: each piece says what follows the end
of the one before it.
"""

import dataclasses

import numpy as np

CUE, ANSWER = 8, 8  # tokens of a needle: those that are repeated as a question, and those that are asked for


@dataclasses.dataclass
class Task:
    tokens: np.ndarray  # up to the last but one of the answer
    answer: np.ndarray
    depth: float  # of the first piece


def words(random, count, vocabulary):
    """Tokens of no meaning, none of which comes twice: `count` of them. The first two of a vocabulary mean beginnings and padding."""
    return random.choice(np.arange(2, vocabulary), count, replace=False)


def insert(straw, places, pieces):
    """`straw` with each piece before the token at its place; pieces of one place stand in their order."""
    order = np.argsort(places, kind="stable")
    parts = np.split(straw, np.asarray(places)[order])
    return np.concatenate(parts[:1] + [part for i, rest in zip(order, parts[1:]) for part in (pieces[i], rest)])


def make(haystack, length, depths, count, vocabulary, seed=0):
    """`count` tasks for each depth, from 0, the beginning of the text, to 1, shortly before the question. A task has `length` tokens and the
    last of its answer: of `haystack` from random places on, a needle of random tokens, and the needle again."""
    random, tasks = np.random.default_rng(seed), []
    text = length + 1 - 2 * (CUE + ANSWER)
    for depth in depths:
        for _ in range(count):
            needle = words(random, CUE + ANSWER, vocabulary)
            begin = random.integers(0, len(haystack) - text)
            straw = haystack[begin:begin + text].astype(np.int64)
            tokens = np.concatenate([insert(straw, [round(depth * text)], [needle]), needle])
            tasks.append(Task(tokens[:-1], needle[CUE:], depth))
    return tasks


def chain(random, hops, vocabulary):
    """Pieces of a chain: `a b`, `b c`, ... and the whole of it, `a b c ...`, each letter for CUE tokens of no meaning."""
    whole = words(random, CUE * (hops + 1), vocabulary)
    return [whole[CUE * i:CUE * (i + 2)] for i in range(hops)] + [whole]


def make_chains(haystack, length, hops, count, vocabulary, seed=0):
    """`count` tasks of `length` tokens and the last of the answer: the pieces of a chain of two hops or more at random places, in their order,
    and the whole of it at the end. The question is its first CUE tokens; what the second and later pieces say is asked for, with what the first
    says as given."""
    random, tasks = np.random.default_rng(seed), []
    for _ in range(count):
        *pieces, whole = chain(random, hops, vocabulary)
        text = length + 1 - len(whole) - sum(map(len, pieces))
        begin = random.integers(0, len(haystack) - text)
        places = np.sort(random.integers(0, text + 1, hops))
        tokens = np.concatenate([insert(haystack[begin:begin + text].astype(np.int64), places, pieces), whole])
        tasks.append(Task(tokens[:-1], whole[2 * CUE:], places[0] / text))
    return tasks


def recall(task, logits):
    """The part of the answer that is the first choice, given what comes before it; `logits` are [tokens, vocabulary]."""
    return float((logits[-len(task.answer):].argmax(axis=-1) == task.answer).mean())


def spread(random, length, count):
    """`count` places of a text in order, from the first to the last of which every distance is as likely."""
    distance = random.integers(0, length + 1)
    begin = random.integers(0, length + 1 - distance)
    return np.sort(np.concatenate([[begin, begin + distance], random.integers(begin, begin + distance + 1, count - 2)]))


def training_text(text, window, windows, most, vocabulary, seed=0):
    """Tokens to train on: `windows` windows of `window` tokens, and one more token. A quarter of them is `text` as it is; each of the others has
    1 to `most` needles, a third of them chains of two hops, with what repeats them behind, near and far alike."""
    random, parts, used = np.random.default_rng(seed), [], 0
    for _ in range(windows):
        count = 0 if random.random() < 1 / 4 else random.integers(1, most + 1)
        groups = [chain(random, 2, vocabulary) if random.random() < 1 / 3 else [words(random, CUE + ANSWER, vocabulary)] * 2 for _ in range(count)]
        pieces = [piece for group in groups for piece in group]
        straw = window - sum(map(len, pieces))
        if straw < 0:
            raise ValueError(f"expected windows for {count} needles, but they are {window} tokens")
        if used + straw >= len(text):
            raise ValueError(f"expected a text for {windows} windows of {window} tokens, but it has {len(text)}")
        places = np.concatenate([spread(random, straw, len(group)) for group in groups]) if groups else np.zeros(0, int)
        parts.append(insert(text[used:used + straw], places, pieces))
        used += straw
    return np.concatenate(parts + [text[used:used + 1]])
