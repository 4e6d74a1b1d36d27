#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named states of compiled programs: two entries over one state, two models in one artefact, and what sessions keep, return to and fork.

A module of three entries shows what its states hold. Decoders, with every type of KV cache, have to give the same bits whatever was fed
and dropped in between.
"""

import pathlib
import tempfile

import numpy as np

import runtime
import suite

# @forward and @verify append rows to @kv, show all of them, and add them up in a slot that is replaced; @draft has a state of its own.
ENTRY = """
  func.func @{name}(%x: tensor<?x1x?x2xf32> {{onnx.name = "x", onnx.dims = ["batch", "", "fresh", ""]}}, %s: !hone.kv<@kv>)
      -> (tensor<?x1x?x2xf32> {{onnx.name = "rows"}}, tensor<?x2xf32> {{onnx.name = "sum"}}, !hone.kv<@kv>) {{
    %0, %rows = hone.kv_append %s[0], %x : !hone.kv<@kv>, tensor<?x1x?x2xf32> -> tensor<?x1x?x2xf32>
    %before = hone.kv_view %0[1] : !hone.kv<@kv> -> tensor<?x2xf32>
    %sum = linalg.reduce ins(%x : tensor<?x1x?x2xf32>) outs(%before : tensor<?x2xf32>) dimensions = [1, 2]
      (%a: f32, %b: f32) {{
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }}
    %1 = hone.kv_replace %0[1], %sum : !hone.kv<@kv>, tensor<?x2xf32>
    return %rows, %sum, %1 : tensor<?x1x?x2xf32>, tensor<?x2xf32>, !hone.kv<@kv>
  }}
"""
MODULE = """
module {
  hone.state @kv [#hone.slot<"rows", tensor<?x1x?x2xf32>, axis = 2>, #hone.slot<"sum", tensor<?x2xf32>>]
  hone.state @other [#hone.slot<"rows", tensor<?x1x?x2xf32>, axis = 2>]
""" + ENTRY.format(name="forward") + ENTRY.format(name="verify") + """
  func.func @draft(%x: tensor<?x1x?x2xf32> {onnx.name = "x", onnx.dims = ["batch", "", "fresh", ""]}, %s: !hone.kv<@other>)
      -> (tensor<?x1x?x2xf32> {onnx.name = "rows"}, !hone.kv<@other>) {
    %0, %rows = hone.kv_append %s[0], %x : !hone.kv<@other>, tensor<?x1x?x2xf32> -> tensor<?x1x?x2xf32>
    return %rows, %0 : tensor<?x1x?x2xf32>, !hone.kv<@other>
  }
}
"""
CACHES = ["f32", "bf16", "int8", "int4"]
MODELS = ["llama.dynamo23/model", "gpt2.optimum/model", "qwen2.genai/model"]


def expect(what, actual, expected):
    if not np.array_equal(actual, expected):
        raise suite.Failure(f"{what}: expected {np.asarray(expected).ravel()[:8]}, but got {np.asarray(actual).ravel()[:8]}")


def refuses(what, call, message):
    try:
        call()
    except suite.Failure as failure:
        if message in str(failure):
            return
        raise suite.Failure(f"{what}: expected '{message}', but got '{failure}'") from None
    raise suite.Failure(f"{what}: expected '{message}', but it passed")


def rows(*numbers):
    return np.array([[number, -number] for number in numbers], np.float32).reshape(1, 1, -1, 2)


def check_entries(tools, library, folder):
    """What each entry sees of the states."""
    source, artefact = folder / "states.mlir", folder / "states.hone"
    source.write_text(MODULE)
    suite.run_tool([tools / "hone", "compile", source, "--start-from=lower", "-o", artefact, "--quiet"])
    module = runtime.Module(library, artefact)
    target, draft = runtime.Session(module), runtime.Session(module, "draft")
    feed = lambda session, entry, *numbers, output="rows": session.call(entry, {"x": rows(*numbers)}, output)
    expect("forward", feed(target, "forward", 1, 2), rows(1, 2))
    expect("verify after forward", feed(target, "verify", 3, 4, 5), rows(1, 2, 3, 4, 5))
    expect("another model", feed(draft, "draft", 9), rows(9))
    refuses("keep with a replaced slot", lambda: target.keep([0, 2]), "state 'sum' has no history")
    refuses("an entry of another state", lambda: feed(target, "draft", 1), "it keeps the state 'other'")
    checkpoint = target.checkpoint()
    fork = target.fork()
    expect("sum", feed(target, "forward", 6, output="sum"), [[21, -21]])
    target.restore(checkpoint)
    expect("sum after a return", feed(target, "verify", 7, output="sum"), [[22, -22]])
    expect("rows of the fork", feed(fork, "forward", 8), rows(1, 2, 3, 4, 5, 8))
    feed(draft, "draft", 1, 2, 3, 4)
    draft.keep([1, 3])
    expect("rows kept", feed(draft, "draft", 5), rows(9, 2, 4, 5))
    for session in target, draft, fork:
        session.close()
    module.close()


def logits(session, name, tokens):
    return session.forward({name: np.array([tokens], np.int64)}, "logits")


def check_decoder(tools, library, folder, path, cache):
    """A session that goes astray and comes back gives the bits of one that did not."""
    artefact = folder / f"{path.parent.name}-{cache}.hone"
    suite.run_tool([tools / "hone", "compile", path, f"--kv-cache={cache}", "-o", artefact, "--quiet"])
    module = runtime.Module(library, artefact)
    name = module.names("forward", runtime.INPUT)[0]
    random = np.random.default_rng(0)
    prompt, wrong = list(random.integers(1, 200, 70)), list(random.integers(1, 200, 9))
    steps = list(random.integers(1, 200, 5))
    plain = runtime.Session(module)
    expected = [logits(plain, name, prompt)] + [logits(plain, name, [token]) for token in steps]
    astray = runtime.Session(module)
    expect("prompt", logits(astray, name, prompt), expected[0])
    checkpoint = astray.checkpoint()
    for number, token in enumerate(steps):
        logits(astray, name, wrong)
        if number % 3 == 0:
            astray.keep([])
        elif number % 3 == 1:
            fork = astray.fork()
            fork.truncate(len(prompt) + number)
            astray.close()
            astray = fork
        else:
            astray.truncate(len(prompt) + number)
        expect(f"step {number}", logits(astray, name, [token]), expected[1 + number])
    refuses("a checkpoint of another session", lambda: astray.restore(checkpoint), "of another session")
    for session in plain, astray:
        session.close()
    module.close()


def main():
    options = suite.parser(__doc__).parse_args()
    tools, library = options.build.resolve() / "bin", options.build.resolve() / "lib" / "libhone_rt.so"
    known = suite.models(own=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [("entries", lambda: check_entries(tools, library, folder))]
        cases += [(f"{model} {cache}", lambda path=known[model], cache=cache: check_decoder(tools, library, folder, path, cache))
                  for model in MODELS for cache in CACHES]
        return suite.run_all([case for case in cases if options.only in case[0]], lambda case: case(), options.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
