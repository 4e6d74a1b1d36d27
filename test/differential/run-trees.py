# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of draft tokens: a call of @verify gives each token the logits that @forward gives after its ancestors, what is kept of it is a
state like that of a text, and texts that are written with trees are those that are written without drafts."""

import functools
import pathlib
import sys
import tempfile

import numpy as np

import runtime
import suite

EXAMPLE = suite.ROOT / "examples" / "python-lm" / "model.onnx"
CACHES = ["model", "bf16", "int8", "int4"]
# Rotations of every exporter, learned positions, windows, layers of both kinds, latent attention, experts, an encoder's keys.
MODELS = ["llama.dynamo23/model", "gpt2.optimum/model", "qwen2.genai/model"]
MORE_MODELS = ["gemma2.genai/model", "gemma3.dynamo18/model", "gpt2.dynamo18/model", "llama.optimum/model", "llama.transformers-ort/model",
               "mistral.genai/model", "mistral.optimum/model", "mixtral.dynamo18/model", "opt.optimum/model", "phi3.genai/model",
               "phi3.optimum/model", "deepseek_v3.optimum/model", "qwen3_moe.optimum/model"]
REFUSED = {"t5.optimum/decoder_model_merged": "the bias of an attention goes by the order of the tokens",
           "bert.optimum/model": "the model has no entry 'forward' of tokens with a state"}
# A token of a tree lies elsewhere than in a chain, so that its products are rounded otherwise: to bf16 by 2^-9, to integers by what is beside.
TOLERANCES = {"int8": 2e-3, "int4": 2e-2, "bf16": 1e-2, "model": 1e-4}
PROMPTS, PROMPT_LENGTH, NEW_TOKENS = 12, 32, 96
SAMPLED = ["--temperature", 0.8, "--top-p", 0.95, "--repetition-penalty", 1.1, "--seed", 5]


def compile_model(tools, path, output, *flags, drafts="tree"):
    suite.run_tool([tools / "hone", "compile", path, f"--speculate={drafts}", *flags, "-o", output, "--quiet"])
    return output


def random_tree(random, pending, nodes):
    """Parents of tokens, of which the first ones are a chain; and ancestors as bits."""
    parents = [i - 1 if i < pending else int(random.integers(pending - 1, i)) for i in range(pending + nodes)]
    words = []
    for i, parent in enumerate(parents):
        words.append((words[parent] if parent >= 0 else 0) | 1 << i)
    return parents, np.array(words, np.uint64).astype(np.int64)


def path_to(parents, node):
    path = []
    while node >= 0:
        path.insert(0, node)
        node = parents[node]
    return path


def compare(what, actual, expected, tolerance):
    excess = np.abs(actual - expected) - tolerance * (1 + np.abs(expected))
    if not (excess <= 0).all():
        at = np.unravel_index(np.argmax(excess), excess.shape)
        raise suite.Failure(f"{what}: got {actual[at]:.6g} at {at}, expected {expected[at]:.6g}")


def forward(session, name, tokens):
    return session.forward({name: np.array([tokens], np.int64)}, "logits")[0]


def check_decoder(tools, library, path, cache):
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        module = runtime.Module(library, compile_model(tools, path, pathlib.Path(folder) / "model.hone", f"--kv-cache={cache}"))
        name = module.names("forward", runtime.INPUT)[0]
        for held, pending, nodes in (0, 1, 9), (13, 1, 40), (60, 3, 20), (64, 1, 63):
            check_tree(module, name, cache, held, random.integers(1, 200, held + pending + nodes).tolist(),
                       random_tree(random, pending, nodes))
        module.close()


def check_tree(module, name, cache, held, tokens, tree):
    parents, ancestors = tree
    prompt, tokens = tokens[:held], tokens[held:]
    session, plain = runtime.Session(module), runtime.Session(module)
    for each in session, plain:
        if prompt:
            forward(each, name, prompt)
    logits = session.call("verify", {name: np.array([tokens], np.int64), "ancestors": ancestors}, "logits")[0]
    leaves = sorted(set(range(len(parents))) - set(parents))
    for node in leaves:
        path = path_to(parents, node)
        expected = forward(plain, name, [tokens[i] for i in path])
        compare(f"{held} held, {len(tokens)} tokens, node {node}", logits[path], expected, TOLERANCES[cache])
        plain.truncate(held)
    kept = path_to(parents, leaves[len(leaves) // 2])
    session.keep(kept)
    forward(plain, name, [tokens[i] for i in kept])
    compare("after what was kept", forward(session, name, [7, 8]), forward(plain, name, [7, 8]), TOLERANCES[cache])
    session.close()
    plain.close()


def check_sequences(tools, library, path, cache):
    """Sequences of different lengths with a tree each: what each gets, and what is kept of it, is, bit for bit, what it is alone."""
    random = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        artefact = compile_model(tools, path, pathlib.Path(folder) / "model.hone", f"--kv-cache={cache}", drafts="tree,batch")
        module = runtime.Module(library, artefact)
        name = module.names("forward", runtime.INPUT)[0]
        verify = lambda session, tokens, words: session.call("verify", {name: np.array(tokens, np.int64), "ancestors": np.array(words)}, "logits")
        alone = [runtime.Session(module) for _ in range(3)]
        for session, length in zip(alone, (5, 40, 20)):
            forward(session, name, random.integers(1, 200, length).tolist())
        batch = runtime.Session.join(alone)
        for nodes in (20, 9, 1, 15) if suite.has_tiles() else (63, 9, 1, 40):
            trees = [random_tree(random, 1, nodes) for _ in alone]
            tokens = random.integers(1, 200, (3, 1 + nodes)).tolist()
            logits, kept = verify(batch, tokens, [words for _, words in trees]), []
            for number, (session, (parents, words)) in enumerate(zip(alone, trees)):
                compare(f"{nodes} nodes, sequence {number}", logits[number], verify(session, [tokens[number]], [words])[0], 0)
                kept.append(path_to(parents, int(random.integers(0, 1 + nodes))))
                session.keep(kept[-1])
            batch.keep_each(kept)
        for session in [batch, *alone]:
            session.close()
        module.close()


def check_bad_calls(tools, library):
    """What is no tree changes no memory but that of the call."""
    with tempfile.TemporaryDirectory() as folder:
        module = runtime.Module(library, compile_model(tools, EXAMPLE, pathlib.Path(folder) / "model.hone"))
        session = runtime.Session(module)
        expected = forward(session, "input_ids", [1, 2, 3])
        call = lambda tokens, words: session.call(
            "verify", {"input_ids": np.full((1, tokens), 5, np.int64), "ancestors": np.array(words, np.int64)}, "logits")
        for tokens, words, message in (65, [1] * 65, "expected a tree of at most 64 tokens, but got 65"), \
                                      (3, [1, 3], "expected input 'ancestors' to have shape [sequence_length], but got [2]"):
            try:
                call(tokens, words)
            except suite.Failure as failure:
                if message not in str(failure):
                    raise suite.Failure(f"expected '{message}', but got '{failure}'") from None
            else:
                raise suite.Failure(f"expected '{message}', but it passed")
        for words in [0, 0, 0], [-1, -1, -1], [2, 4, 1]:
            call(3, words)
            session.truncate(3)
        session.truncate(0)
        compare("after bad calls", forward(session, "input_ids", [1, 2, 3]), expected, 0)
        session.close()
        module.close()


def check_refused(tools, path, message):
    with tempfile.TemporaryDirectory() as folder:
        try:
            compile_model(tools, path, pathlib.Path(folder) / "model.hone")
        except suite.Failure as failure:
            if message not in str(failure):
                raise
            return
    raise suite.Failure(f"expected '{message}', but it was compiled")


def example_prompts():
    from tokenizers import Tokenizer
    text = "\n".join(path.read_text() for path in sorted((suite.ROOT / "scripts").glob("**/*.py")))
    ids = Tokenizer.from_file(str(EXAMPLE.with_name("tokenizer.json"))).encode(text).ids
    return [ids[start:start + PROMPT_LENGTH] for start in np.linspace(0, len(ids) - PROMPT_LENGTH, PROMPTS).astype(int)]


def check_texts(tools, *flags):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokenizer = EXAMPLE.with_name("tokenizer.json")
        artefact = compile_model(tools, EXAMPLE, folder / "model.hone", f"--tokenizer={tokenizer}", *flags)
        suite.run_tool([tools / "hone", "corpus", "build", suite.ROOT / "test" / "differential", "--tokenizer", tokenizer, "-o",
                        folder / "source.corpus"])
        np.save(folder / "prompts.npy", np.array(example_prompts(), np.int64))
        write = functools.partial(write_texts, tools, artefact, folder)
        for sampling in [], SAMPLED:
            plain = write(*sampling)
            for drafts in ["--speculate=automaton"], ["--speculate=automaton,corpus", "--draft-corpus", folder / "source.corpus"]:
                texts = write(*sampling, *drafts, "--draft-tree")
                if not np.array_equal(plain, texts):
                    row, token = np.argwhere(plain != texts)[0]
                    raise suite.Failure(f"{drafts[0]} {'sampled' if sampling else 'greedy'}: token {token} of prompt {row} is "
                                        f"{texts[row, token]}, expected {plain[row, token]}")


def write_texts(tools, artefact, folder, *flags):
    output = folder / "new.npy"
    suite.run_tool([tools / "hone-run", "run", artefact, "--tokens", folder / "prompts.npy", "--output-tokens", output, "--max-new-tokens",
                    NEW_TOKENS, "--ignore-end", *flags])
    return np.load(output)


def cases(library):
    known = suite.models()
    for model in MODELS + [model for model in MORE_MODELS if model in known]:
        for cache in CACHES if model in MODELS else CACHES[:1]:
            yield f"{model} {cache}", lambda tools, path=known[model], cache=cache: check_decoder(tools, library, path, cache)
    for model in MODELS:
        for cache in CACHES:
            yield f"{model} {cache} sequences", lambda tools, path=known[model], cache=cache: check_sequences(tools, library, path, cache)
    for model, message in REFUSED.items():
        if model in known:
            yield f"{model} refused", lambda tools, path=known[model], message=message: check_refused(tools, path, message)
    yield "bad calls", lambda tools: check_bad_calls(tools, library)
    yield "texts", check_texts
    yield "texts in int8", lambda tools: check_texts(tools, "--quantize=int8", "--kv-cache=int8")


def main():
    options = suite.parser(__doc__).parse_args()
    build = options.build.resolve()
    chosen = [case for case in cases(build / "lib" / "libhone_rt.so") if options.only in case[0]]
    return suite.run_all(chosen, lambda check: check(build / "bin"), options.jobs)


sys.exit(main())
