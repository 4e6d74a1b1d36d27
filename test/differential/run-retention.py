#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sessions that keep a bounded number of keys (hone compile --kv-retention) beside attention over the keys that stay, in NumPy.

One layer of attention over a state, causal or sliding, with grouped heads, in every type of KV cache and by every policy: of a prompt and tokens
after it, in calls of different sizes, each result equals attention over the keys that the policy says in float64. Keys and values are such that
the cache holds them exactly, and of other random numbers than those where the choice is nearly equal. While the text is not longer than
the budget, results equal those of a model that keeps all keys, bit for bit. What the session does not do is refused, and changes nothing.
"""

import pathlib
import tempfile

import numpy as np

import runtime
import suite

HEADS, KEY_HEADS, SIZE = 4, 2, 32
GROUP = HEADS // KEY_HEADS
MODULE = """
module {{
  hone.state @kv [#hone.slot<"key", tensor<?x{kv}x?x{size}xf32>, axis = 2>, #hone.slot<"value", tensor<?x{kv}x?x{size}xf32>, axis = 2>]
  func.func @forward(%ids: tensor<?x?xi64> {{onnx.name = "ids", onnx.dims = ["batch", "fresh"]}},
      %q: tensor<?x{heads}x?x{size}xf32> {{onnx.name = "q", onnx.dims = ["batch", "", "fresh", ""]}},
      %k: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "k", onnx.dims = ["batch", "", "fresh", ""]}},
      %v: tensor<?x{kv}x?x{size}xf32> {{onnx.name = "v", onnx.dims = ["batch", "", "fresh", ""]}}, %s: !hone.kv<@kv>)
      -> (tensor<?x{heads}x?x{size}xf32> {{onnx.name = "out"}}, !hone.kv<@kv>) {{
    %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x{kv}x?x{size}xf32> -> tensor<?x{kv}x?x{size}xf32>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x{kv}x?x{size}xf32> -> tensor<?x{kv}x?x{size}xf32>
    %2 = hone.attention %q, %keys, %values pattern({pattern}) scale({scale}) {softcap}
       : (tensor<?x{heads}x?x{size}xf32>, tensor<?x{kv}x?x{size}xf32>, tensor<?x{kv}x?x{size}xf32>) -> tensor<?x{heads}x?x{size}xf32>
    return %2, %1 : tensor<?x{heads}x?x{size}xf32>, !hone.kv<@kv>
  }}
}}
"""
SCALE, SOFTCAP, WINDOW, POOLED, MOST_QUERIES = 0.25, 5.0, 24, 5, 128
# Types of the cache, and how far results may be apart: with 16 bits the products of attention are rounded to 8 bits of probability, with
# integers queries and probabilities to 16.
CACHES = {"f32": 1e-5, "bf16": 2**-6, "f16": 2**-6, "int8": 2**-9, "int4": 2**-9}
# How far masses have to be apart at each choice, as a part of the greater.
MARGINS = {"f32": 1e-4, "bf16": 2e-3, "f16": 2e-3, "int8": 2e-3, "int4": 2e-3}
CALLS = [1, 20, 1, 1, 3, 40, 1, 1, 1, 1, 1, 1, 2, 1, 1, 9, 150, 1, 1, 1, 1]
# Policy, budget, sinks and recent keys.
POLICIES = [("snapkv", 48, 4, 8), ("snapkv", 33, 0, 16), ("h2o", 48, 4, 16), ("h2o", 20, 1, 3), ("prefix", 40, 2, 8)]


def compile_session(tools, library, cache, options, pattern="#hone.causal", softcap=""):
    with tempfile.TemporaryDirectory() as name:
        source, artefact = pathlib.Path(name) / "model.mlir", pathlib.Path(name) / "model.hone"
        source.write_text(MODULE.format(scale=SCALE, heads=HEADS, kv=KEY_HEADS, size=SIZE, pattern=pattern, softcap=softcap))
        suite.run_tool([tools / "hone", "compile", source, "--start-from=rewrite", f"--kv-cache={cache}", *options, "-o", artefact, "--quiet"])
        return runtime.Session(runtime.Module(library, artefact))


def exact(random, count, cache):
    """Rows that a cache of these integers holds as they are: its greatest code is in each."""
    shape = (1, KEY_HEADS, count, SIZE)
    if cache == "int8":
        rows, last = random.integers(-127, 128, shape) / 64.0, [127 / 64.0]
    else:
        rows, last = random.integers(0, 16, shape) / 8.0 - 1, [-1.0, 0.875]
    rows[..., :len(last)] = last
    return rows.astype(np.float32)


def feed(random, count, cache):
    return {"ids": np.zeros((1, count), np.int64), "q": random.standard_normal((1, HEADS, count, SIZE)).astype(np.float32),
            "k": exact(random, count, cache), "v": exact(random, count, cache)}


class Layer:
    """What one layer keeps, by KV head: numbers of positions of the text, and the mass of those that had some."""

    def __init__(self, policy, softcap, window):
        self.policy, self.softcap, self.window = policy, softcap, window
        self.q, self.k, self.v = (np.zeros((1, heads, 0, SIZE), np.float32) for heads in (HEADS, KEY_HEADS, KEY_HEADS))
        self.kept = [np.zeros(0, int) for _ in range(KEY_HEADS)]
        self.mass = [np.zeros(0) for _ in range(KEY_HEADS)]
        self.measured, self.margin = 0, np.inf

    def probabilities(self, head, queries):
        """Of the queries of these positions, all in the text, and the kept keys of the KV head of a head, in float64."""
        kept = self.kept[head // GROUP]
        logits = SCALE * self.q[0, head, queries].astype(np.float64) @ self.k[0, head // GROUP, kept].astype(np.float64).T
        if self.softcap:
            logits = self.softcap * np.tanh(logits / self.softcap)
        visible = (kept[None, :] <= queries[:, None]) & (kept[None, :] > queries[:, None] - self.window)
        weights = np.where(visible, np.exp(logits - logits.max(axis=1, keepdims=True)), 0)
        return weights / weights.sum(axis=1, keepdims=True)

    def measure(self, length):
        policy, _, _, recent = self.policy
        first = max(length - recent, 0) if policy == "snapkv" else self.measured
        for group in range(KEY_HEADS):
            fresh = sum(self.probabilities(group * GROUP + h, np.arange(first, length)).sum(axis=0) for h in range(GROUP))
            fresh[-1] = 0  # the last key stays anyway
            if policy != "snapkv":
                fresh[:len(self.mass[group])] += self.mass[group]
            self.mass[group] = fresh
        self.measured = length

    def choose(self, mass, count):
        policy, _, sinks, recent = self.policy
        if policy == "snapkv":
            mass = np.array([mass[max(i - POOLED // 2, 0):i + POOLED // 2 + 1].mean() for i in range(len(mass))])
        order = np.arange(sinks, len(mass) - recent)
        order = order[np.argsort(-mass[order], kind="stable")]
        chosen = count - sinks - recent
        if 0 < chosen < len(order):
            least, next_one = mass[order[chosen - 1]], mass[order[chosen]]
            self.margin = min(self.margin, (least - next_one) / least)
        return np.sort(np.concatenate([np.arange(sinks), order[:chosen], np.arange(len(mass) - recent, len(mass))]))

    def evict(self, length, count, measures):
        shared = self.choose(np.mean(self.mass, axis=0), count) if measures and self.policy[0] == "prefix" else None
        for group in range(KEY_HEADS):
            if not measures:
                stay = np.arange(len(self.kept[group]) - count, len(self.kept[group]))
            else:
                stay = shared if shared is not None else self.choose(self.mass[group], count)
                self.mass[group] = self.mass[group][stay]
            self.kept[group] = self.kept[group][stay]

    def forward(self, arrays):
        policy, budget, _, _ = self.policy
        block = -(-budget // 16)
        length, fresh = self.k.shape[2], arrays["k"].shape[2]
        is_sliding = self.window < 2**40
        if is_sliding:
            budget = self.window + block
        held = len(self.kept[0])
        is_due = held + fresh > budget and held > budget - block
        if not is_sliding and (is_due or (policy != "snapkv" and length - self.measured > MOST_QUERIES)):
            self.measure(length)
        if is_due:
            self.evict(length, budget - block, not is_sliding)
        self.q, self.k, self.v = (np.concatenate([old, arrays[name]], axis=2) for name, old in (("q", self.q), ("k", self.k), ("v", self.v)))
        queries = np.arange(length, length + fresh)
        self.kept = [np.concatenate([kept, queries]) for kept in self.kept]
        return np.stack([self.probabilities(head, queries) @ self.v[0, head // GROUP, self.kept[head // GROUP]] for head in range(HEADS)])[None]


def simulate(cache, policy, softcap, window):
    """Inputs of calls and results, where no choice is nearly equal."""
    for seed in range(500):
        random, layer = np.random.default_rng(seed), Layer(policy, softcap, window)
        calls = []
        for count in CALLS:
            arrays = feed(random, count, cache)
            calls.append((arrays, layer.forward(arrays), len(layer.kept[0])))
        if layer.margin > MARGINS[cache]:
            return calls
    raise suite.Failure("expected random numbers whose choices are clear")


def check(tools, library, cache, policy, softcap=None, window=2**40):
    name, budget, sinks, recent = policy
    options = [f"--kv-retention={name}", f"--kv-budget={budget}", f"--kv-sinks={sinks}", f"--kv-recent={recent}"]
    if name == "prefix":  # with one budget for all layers, of which there is one
        options = [f"--pass-pipeline=hone-retain-keys{{policy=prefix budget={budget} sinks={sinks} recent={recent}}}"]
    attention = {"pattern": f"#hone.sliding<window = {window}>"} if window < 2**40 else {}
    attention |= {"softcap": f"softcap({softcap})"} if softcap else {}
    bounded = compile_session(tools, library, cache, options, **attention)
    dense = compile_session(tools, library, cache, [], **attention)
    held = 0
    for number, (arrays, expected, keys) in enumerate(simulate(cache, policy, softcap, window)):
        found, all_keys = bounded.forward(arrays, "out"), dense.forward(arrays, "out")
        held += arrays["k"].shape[2]
        if keys == held and not np.array_equal(found, all_keys):
            raise suite.Failure(f"call {number} after {held} tokens: expected the bits of attention over all keys")
        difference = np.abs(found - expected).max()
        if not difference <= CACHES[cache]:
            raise suite.Failure(f"call {number} after {held} tokens: expected attention over {keys} keys, but differs by {difference}")


def check_history(tools, library):
    """Going back to before an eviction, joining and batches are refused with a reason; a copy goes on as the session does."""
    session = compile_session(tools, library, "f32", ["--kv-retention=h2o", "--kv-budget=32"])
    random = np.random.default_rng(0)
    calls = [feed(random, count, "f32") for count in (30, 4, 1, 1)]
    session.forward(calls[0], "out")
    early = session.checkpoint()
    session.forward(calls[1], "out")
    copy, point = session.fork(), session.checkpoint()
    third = session.forward(calls[2], "out")
    if not np.array_equal(copy.forward(calls[2], "out"), third):
        raise suite.Failure("expected a copy to go on as the session does")
    for lost in (early, point):
        expect("positions: some of them were dropped", lambda lost=lost: session.restore(lost))
    session.truncate(34)  # all but what came after the eviction
    session.forward(calls[3], "out")
    expect("cannot truncate to 33 positions: of the first 34 some were evicted", lambda: session.truncate(33))
    expect("cannot join a session", lambda: runtime.Session.join([session, copy]))
    batch = {name: np.repeat(array, 2, axis=0) for name, array in calls[0].items()}
    other = compile_session(tools, library, "f32", ["--kv-retention=snapkv", "--kv-budget=64"])
    expect("expected one sequence", lambda: other.forward(batch, "out"))
    other.forward(calls[0], "out")


def expect(reason, action):
    try:
        action()
    except suite.Failure as failure:
        if reason in str(failure):
            return
        raise
    raise suite.Failure(f"expected a refusal: {reason}")


def main():
    options = suite.parser(__doc__).parse_args()
    tools, library = options.build.resolve() / "bin", options.build.resolve() / "lib" / "libhone_rt.so"
    cases = [(f"{cache} {policy[0]} {policy[1]}", lambda cache=cache, policy=policy: check(tools, library, cache, policy))
             for cache in CACHES for policy in POLICIES]
    cases += [("softcap", lambda: check(tools, library, "f32", POLICIES[0], softcap=SOFTCAP))]
    cases += [("history", lambda: check_history(tools, library))]
    cases += [(f"sliding {cache}", lambda cache=cache: check(tools, library, cache, POLICIES[0], window=WINDOW)) for cache in CACHES]
    return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
