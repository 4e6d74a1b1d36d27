# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts of encoder-decoders, against onnxruntime with the same files: the encoder once, the decoder without a past, then the one with a past.

A case is MODEL.FORM: the decoders of `merged` are one file, those of `split` two. Texts are greedy; where two tokens are likely alike, either
may come. The same through the C interface, and for `cuda` on the emulated GPU.
"""

import ctypes
import pathlib
import shutil
import sys
import tempfile

import numpy as np

import greedy_texts
import onnx_reference
import suite

NEW_TOKENS = 24
LENGTHS = (3, 11, 26)  # of the encoder's tokens
FORMS = {"merged": ("decoder_model_merged",), "split": ("decoder_model", "decoder_with_past_model")}


def folders():
    """Folders with an encoder, by name."""
    found = sorted((suite.ROOT / "test" / "Driver" / "Inputs" / "encoder-decoders").glob("*/encoder_model.onnx"))
    if shared := suite.shared_models():
        found += sorted((shared / "zoo").glob("*/encoder_model.onnx"))
    return {path.parent.name: path.parent for path in found}


def cases():
    found = [(f"{name}.{form}", (folder, form, [])) for name, folder in folders().items() for form, files in FORMS.items()
             if all((folder / f"{file}.onnx").exists() for file in files)]
    cuda = ["--target=cuda", "--chip=sm_90"]
    return found + [(f"{name}.cuda", (folder, form, cuda)) for name, (folder, form, _) in found if name == "marian.merged"]


class Reference:
    """The pipeline of onnxruntime."""

    def __init__(self, folder, form):
        self.encoder = onnx_reference.open_session(folder / "encoder_model.onnx")
        sessions = [onnx_reference.open_session(folder / f"{file}.onnx") for file in FORMS[form]]
        self.first, self.next = sessions[0], sessions[-1]
        self.vocabulary = self.first.get_outputs()[0].shape[-1]

    def inputs(self, length, random):
        """What the encoder reads: as many tokens, or features of its own number."""
        shapes = {value.name: value.shape for value in self.encoder.get_inputs()}
        if "input_features" in shapes:
            return {"input_features": random.standard_normal([1, *shapes["input_features"][1:]], np.float32)}
        return {"input_ids": random.integers(3, self.vocabulary - 2, (1, length)), "attention_mask": np.ones((1, length), np.int64)}

    def call(self, session, tokens, given, past):
        """Logits of the last token, and the keys and values by the names of inputs."""
        values = {"input_ids": np.array([tokens]), **given, **past}
        feeds = {}
        for value in session.get_inputs():
            if value.name == "use_cache_branch":
                feeds[value.name] = np.array([bool(past)])
            elif value.name in values:
                feeds[value.name] = values[value.name]
            else:  # a past that is not there yet
                feeds[value.name] = np.zeros([1 if isinstance(size, str) and axis == 0 else 0 if isinstance(size, str) else size
                                              for axis, size in enumerate(value.shape)], np.float32)
        outputs = dict(zip((value.name for value in session.get_outputs()), session.run(None, feeds)))
        fresh = {name.replace("present", "past_key_values"): value for name, value in outputs.items() if name != "logits"}
        return outputs["logits"][0, -1], {**past, **{name: value for name, value in fresh.items() if value.size}}

    def write(self, inputs, start):
        """Greedy tokens, each with how much less likely the second one is."""
        given = {"encoder_hidden_states": self.encoder.run(["last_hidden_state"], inputs)[0]}
        if "attention_mask" in inputs:
            given["encoder_attention_mask"] = inputs["attention_mask"]
        logits, past = self.call(self.first, start, given, {})
        written = []
        while True:
            written.append(greedy_texts.likeliest(logits))
            if len(written) == NEW_TOKENS:
                return written
            logits, past = self.call(self.next, [written[-1][0]], given, past)


def check(case, build):
    source, form, flags = case
    tools = build / "bin"
    reference = Reference(source, form)
    random = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model").mkdir()
        for file in ("encoder_model", *FORMS[form]):
            shutil.copy(source / f"{file}.onnx", folder / "model")
        artefact = folder / "model.hone"
        suite.run_tool([tools / "hone", "compile", folder / "model", *flags, "-o", artefact])
        for length in LENGTHS:
            inputs, start = reference.inputs(length, random), [3, 1]
            expected = reference.write(inputs, start)
            np.savez(folder / "in.npz", **inputs)
            np.save(folder / "start.npy", start)
            suite.run_tool([tools / "hone-run", "run", artefact, "--encoder-inputs", folder / "in.npz", "--decoder-tokens",
                            folder / "start.npy", "--max-new-tokens", NEW_TOKENS, "--output-tokens", folder / "out.npy"])
            greedy_texts.compare(np.load(folder / "out.npy"), expected)
            greedy_texts.compare(greedy_texts.write_by_c(build / "lib" / "libhone_rt.so", artefact, inputs, start, NEW_TOKENS), expected)


def main():
    options = suite.parser(__doc__).parse_args()
    # For this process, whose loader has read the paths of libraries long ago, and for those that it starts.
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    chosen = [case for case in cases() if options.only in case[0]]
    return suite.run_all(chosen, lambda case: check(case, options.build), options.jobs)


sys.exit(main())
