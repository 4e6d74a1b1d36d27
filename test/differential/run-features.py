# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts with images in them: a decoder that reads embeddings, the model that looks them up, and an encoder, in one folder, against onnxruntime
with the three files, of which each has an opset of its own. What does not fit is refused.

The files are those of a small language model, cut after its embeddings, and an encoder of random weights. Texts are greedy; where two tokens
are likely alike, either may come. The same through the C interface, with the prompt in pieces, and for `.cuda` on the emulated GPU.
"""

import ctypes
import pathlib
import sys
import tempfile

import numpy as np

import feature_models
import greedy_texts
import onnx_reference
import suite

MODELS = ("phi3.optimum", "llama.dynamo23", "qwen3_moe.optimum", "phi3.optimum.cuda")
REFUSALS = "refusals"
NEW_TOKENS = 16
IMAGE = 5    # the token that stands for them


class Reference:
    """The pipeline of onnxruntime."""

    def __init__(self, folder):
        self.embed, self.decoder, self.encoder = (onnx_reference.open_session(folder / f"{file}.onnx")
                                                  for file in ("embed_tokens", "decoder_model_merged", "vision_encoder"))

    def write(self, prompt, pixels):
        """Greedy tokens, each with how much less likely the second one is. The features take the places of IMAGE in the prompt."""
        embeds = self.embed.run(None, {"input_ids": np.array([prompt])})[0]
        if pixels is not None:
            features = self.encoder.run(None, {"pixel_values": pixels})[0]
            embeds[0, np.array(prompt) == IMAGE] = features.reshape(-1, features.shape[-1])
        past, length, written = {}, 0, []
        while True:
            logits, past = self.call(embeds, past, length)
            length += embeds.shape[1]
            written.append(greedy_texts.likeliest(logits))
            if len(written) == NEW_TOKENS:
                return written
            embeds = self.embed.run(None, {"input_ids": np.array([[written[-1][0]]])})[0]

    def call(self, embeds, past, length):
        """Logits of the last token, and the keys and values by the names of inputs."""
        count = embeds.shape[1]
        values = {"inputs_embeds": embeds, "attention_mask": np.ones((1, length + count), np.int64),
                  "position_ids": np.arange(length, length + count)[None], **past}
        feeds = {}
        for value in self.decoder.get_inputs():
            sizes = [1 if axis == 0 else 0 if isinstance(size, str) else size for axis, size in enumerate(value.shape)]
            feeds[value.name] = values.get(value.name, np.zeros(sizes, np.float32))  # a past that is not there yet
        outputs = dict(zip((value.name for value in self.decoder.get_outputs()), self.decoder.run(None, feeds)))
        fresh = {name.replace("present", "past_key_values"): value for name, value in outputs.items() if name != "logits"}
        return outputs["logits"][0, -1], fresh


def prompts():
    """Prompts as users write them and with a token for each feature, and how many images they have."""
    patch = [IMAGE] * feature_models.PATCHES
    return [([3, 9, 21, 7], [3, 9, 21, 7], 0),
            ([3, IMAGE, 8, 11], [3, *patch, 8, 11], 1),
            ([3, *patch, 8], [3, *patch, 8], 1),
            ([IMAGE, 7, 30, IMAGE, 2], [*patch, 7, 30, *patch, 2], 2)]


def check(name, build):
    model = name.removesuffix(".cuda")
    tools, random = build / "bin", np.random.default_rng(5)
    flags = ["--target=cuda", "--chip=sm_90"] if model != name else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "model").mkdir()
        feature_models.write(suite.models(own=True)[f"{model}/model"], folder / "model", IMAGE)
        reference, artefact = Reference(folder / "model"), folder / "model.hone"
        suite.run_tool([tools / "hone", "compile", folder / "model", *flags, "-o", artefact])
        for prompt, whole, images in prompts():
            pixels = random.standard_normal((images, 3, 8, 8), np.float32) if images else None
            expected = reference.write(whole, pixels)
            np.save(folder / "tokens.npy", prompt)
            command = [tools / "hone-run", "run", artefact, "--tokens", folder / "tokens.npy", "--max-new-tokens", NEW_TOKENS,
                       "--output-tokens", folder / "out.npy", "--ignore-end"]
            if images:
                np.savez(folder / "in.npz", pixel_values=pixels)
                command += ["--encoder-inputs", folder / "in.npz"]
            suite.run_tool(command)
            greedy_texts.compare(np.load(folder / "out.npy"), expected)
            given = {"pixel_values": pixels} if images else None
            got = greedy_texts.write_by_c(build / "lib" / "libhone_rt.so", artefact, given, prompt, NEW_TOKENS, prefill_chunk=3)
            greedy_texts.compare(got, expected)


def check_refusals(build):
    """Commands with what they say."""
    tools = build / "bin"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        feature_models.write(suite.models(own=True)["phi3.optimum/model"], folder, IMAGE)
        decoder, lookup, encoder = (folder / f"{name}.onnx" for name in ("decoder_model_merged", "embed_tokens", "vision_encoder"))
        np.savez(folder / "in.npz", pixel_values=np.zeros((1, 3, 8, 8), np.float32))
        for name, prompt in (("none", [3, 9]), ("once", [3, IMAGE]), ("thrice", [IMAGE] * 3)):
            np.save(folder / f"{name}.npy", prompt)
        artefact = folder / "model.hone"
        suite.run_tool([tools / "hone", "compile", decoder, "--embedding", lookup, "--encoder", encoder, "--feature-token", IMAGE, "-o", artefact])
        compiling, running = [tools / "hone", "compile", "-o", folder / "no.hone"], [tools / "hone-run", "run", artefact]
        given = ["--encoder-inputs", folder / "in.npz"]
        for command, message in (
                ([*compiling, decoder, "--embedding", lookup, "--encoder", encoder], "expected --feature-token"),
                ([*compiling, decoder, "--embedding", encoder], "and nothing else, but it reads 'pixel_values'"),
                ([*compiling, encoder, "--embedding", lookup], "expected a decoder that reads 'inputs_embeds'"),
                ([*compiling, decoder, "--embedding", lookup, "--encoder", lookup, "--feature-token", IMAGE], "that no input of the decoder has, but got"),
                ([*compiling, decoder, "--embedding", lookup, "--feature-token", IMAGE], "expected --encoder and --embedding with --feature-token"),
                ([*running, "--tokens", folder / "once.npy"], f"expected a prompt without token {IMAGE}"),
                ([*running, "--tokens", folder / "none.npy", *given], f"expected the prompt to have token {IMAGE} where the 4 features go"),
                ([*running, "--tokens", folder / "thrice.npy", *given], "or as often as divides them, but got 3"),
                ([*running, "--tokens", folder / "once.npy", *given, "--prompt-cache", folder / "cache"], "unsupported --prompt-cache"),
                ([*running, "--tokens", folder / "none.npy", "--batch", 2], "unsupported --batch"),
                ([*running, "--tokens", folder / "none.npy", "--decoder-tokens", folder / "none.npy"], "unsupported --decoder-tokens")):
            try:
                suite.run_tool(command)
            except suite.Failure as failure:
                if message not in str(failure):
                    raise
            else:
                raise suite.Failure(f"expected '{message}', but nothing was refused")
        if (folder / "no.hone").exists():
            raise suite.Failure("a refused model left an artefact")


def main():
    options = suite.parser(__doc__).parse_args()
    # For this process, whose loader has read the paths of libraries long ago, and for those that it starts.
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    cases = [(name, name) for name in (*MODELS, REFUSALS) if options.only in name]

    def run(name):
        return check_refusals(options.build) if name == REFUSALS else check(name, options.build)

    return suite.run_all(cases, run, options.jobs)


sys.exit(main())
