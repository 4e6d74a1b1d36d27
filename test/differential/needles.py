# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Needles in a haystack: texts with a few tokens of no meaning at some depth, whose beginning is repeated at the end. A model that attends
to them goes on as they did."""

import dataclasses

import numpy as np

CUE, ANSWER = 8, 8  # tokens of a needle: those that are repeated as a question, and those that are asked for


@dataclasses.dataclass
class Task:
    tokens: np.ndarray  # up to the last but one of the answer
    answer: np.ndarray
    depth: float


def make(haystack, length, depths, count, vocabulary, seed=0):
    """`count` tasks for each depth, from 0, the beginning of the text, to 1, shortly before the question. A task has `length` tokens and the
    last of its answer: of `haystack` from random places on, a needle of random tokens, and the needle again."""
    random, tasks = np.random.default_rng(seed), []
    text = length + 1 - 2 * (CUE + ANSWER)
    for depth in depths:
        for _ in range(count):
            needle = random.choice(np.arange(2, vocabulary), CUE + ANSWER, replace=False)
            begin = random.integers(0, len(haystack) - text)
            straw, at = haystack[begin:begin + text].astype(np.int64), int(round(depth * text))
            tokens = np.concatenate([straw[:at], needle, straw[at:], needle])
            tasks.append(Task(tokens[:-1], needle[CUE:], depth))
    return tasks


def recall(task, logits):
    """The part of the answer that is the first choice, given what comes before it; `logits` are [tokens, vocabulary]."""
    return float((logits[-ANSWER:].argmax(axis=-1) == task.answer).mean())
