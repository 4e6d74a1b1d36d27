# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embeddings of texts, against onnxruntime's vectors of tokens pooled with numpy as Sentence Transformers does.

A case is a kind of pooling, which a folder of Sentence Transformers asks for, in either form of its configuration.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

import onnx_reference
import suite

MODEL = suite.ROOT / "test" / "models" / "bert.optimum" / "model.onnx"
TEXTS = ["A compiler turns a program into another.", "cat", "the the the", "A text that is longer than what the model takes, so that it is cut", ""]
MOST_TOKENS = 12
TOLERANCE = 1e-5  # of the largest element: f32 in another order of summation
KEYS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens",
        "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens", "weightedmean": "pooling_mode_weightedmean_tokens",
        "lasttoken": "pooling_mode_lasttoken"}


def make_tokenizer(path):
    """A token for each character, with one that begins texts and one that ends them."""
    characters = sorted(set("".join(TEXTS).lower()))
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters, *("##" + each for each in characters)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(path))
    tokenizer.enable_truncation(MOST_TOKENS)
    return tokenizer


def make_folder(folder, pooling, normalizes, is_named):
    folder.mkdir()
    (folder / "1_Pooling").mkdir()
    shutil.copy(MODEL, folder)
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * normalizes
    modules = [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
               for i, kind in enumerate(kinds)]
    config = {"pooling_mode": pooling} if is_named else {key: name == pooling for name, key in KEYS.items()}
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": MOST_TOKENS}))
    return make_tokenizer(folder / "tokenizer.json")


def pool(vectors, pooling):
    """Of a text without padding."""
    count = len(vectors)
    positions = np.arange(1, count + 1, dtype=np.float32)[:, None]
    return {"cls": lambda: vectors[0], "mean": lambda: vectors.sum(0) / count, "max": lambda: vectors.max(0),
            "mean_sqrt_len_tokens": lambda: vectors.sum(0) / np.sqrt(count),
            "weightedmean": lambda: (vectors * positions).sum(0) / positions.sum(), "lasttoken": lambda: vectors[-1]}[pooling]()


def embed(session, tokenizer, text, pooling, normalizes):
    ids = np.array([tokenizer.encode(text).ids])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    vectors = session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})[0][0]
    vector = pool(vectors, pooling)
    return vector / np.linalg.norm(vector) if normalizes else vector


def check(case, tools):
    pooling, normalizes, is_named = case
    session = onnx_reference.open_session(MODEL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokenizer = make_folder(folder / "model", *case)
        suite.run_tool([tools / "hone", "compile", folder / "model", "-o", folder / "model.hone"])
        (folder / "texts").write_text("\n".join(TEXTS[:-1]) + "\n\n")
        suite.run_tool([tools / "hone-run", "embed", folder / "model.hone", "--texts", folder / "texts", "--output", folder / "out.npy"])
        got = np.load(folder / "out.npy")
    expected = np.array([embed(session, tokenizer, text, pooling, normalizes) for text in TEXTS])
    if got.shape != expected.shape:
        raise suite.Failure(f"expected vectors of shape {expected.shape}, but got {got.shape}")
    difference = np.abs(got - expected).max() / np.abs(expected).max()
    if not difference <= TOLERANCE:
        raise suite.Failure(f"differs by {difference:.3g} of the largest element")


def main():
    options = suite.parser(__doc__).parse_args()
    cases = [(f"{pooling}{'.normalized' * normalizes}", (pooling, normalizes, number % 2 == 0))
             for number, pooling in enumerate(KEYS) for normalizes in (False, True)]
    return suite.run_all([case for case in cases if options.only in case[0]], lambda case: check(case, options.build / "bin"), options.jobs)


sys.exit(main())
