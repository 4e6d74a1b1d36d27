# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Made the folders marian and whisper beside it: random weights, exported by optimum-onnx 0.1 with transformers 4.57.

Prints the texts that transformers writes, which Driver/encoder.test and run-encoders.py expect: python make_encoder_decoders.py OUT
"""

import pathlib
import sys

import numpy as np
import torch
from optimum.exporters.onnx import main_export
from transformers import MarianConfig, MarianMTModel, WhisperConfig, WhisperForConditionalGeneration

VOCABULARY = 64
SIZES = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
             encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=VOCABULARY)
PROMPTS = ([7, 3, 21, 40, 0], [33, 12, 9, 5, 5, 28, 61, 2, 17, 0])


def randomize(model):
    """Positions of the encoder are sinusoids, which loading computes."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "positions" not in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return model


def store(kind, model, folder):
    model.save_pretrained(folder)
    return kind.from_pretrained(folder).eval()


def make_marian(out):
    last = VOCABULARY - 1
    model = randomize(MarianMTModel(MarianConfig(max_position_embeddings=32, pad_token_id=last, eos_token_id=0, forced_eos_token_id=0,
                                                 decoder_start_token_id=last, decoder_vocab_size=VOCABULARY, scale_embedding=True,
                                                 **SIZES)))
    model.generation_config.bad_words_ids = [[last]]
    model.generation_config.num_beams = 6
    model = store(MarianMTModel, model, out / "hf")
    for prompt in PROMPTS:
        tokens = model.generate(input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                max_new_tokens=12, num_beams=1)
        print("marian", prompt, tokens[0].tolist())
    main_export(str(out / "hf"), str(out), task="text2text-generation-with-past", do_validation=False, opset=18)


def make_whisper(out):
    model = randomize(WhisperForConditionalGeneration(WhisperConfig(
        num_mel_bins=8, max_source_positions=1500, max_target_positions=32, decoder_start_token_id=3, pad_token_id=2, bos_token_id=2,
        eos_token_id=2, suppress_tokens=[11, 60], begin_suppress_tokens=[41, 2], **SIZES)))
    settings = model.generation_config
    settings.no_timestamps_token_id = VOCABULARY - 1
    settings.lang_to_id = {"<|en|>": 10, "<|de|>": 12, "<|fr|>": 13}
    settings.task_to_id = {"transcribe": 14, "translate": 15}
    settings.is_multilingual = True
    model = store(WhisperForConditionalGeneration, model, out / "hf")
    for rate in (1, 2, 3):
        features = np.sin(np.arange(24000, dtype=np.float32).reshape(1, 8, 3000) * rate)
        print("whisper", rate, model.generate(torch.tensor(features), max_new_tokens=12, num_beams=1)[0].tolist())
    main_export(str(out / "hf"), str(out), task="automatic-speech-recognition-with-past", do_validation=False, opset=18)


def main():
    torch.manual_seed(9)
    out = pathlib.Path(sys.argv[1])
    make_marian(out / "marian")
    make_whisper(out / "whisper")


main()
