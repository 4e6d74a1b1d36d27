# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks that are measured: shapes of public models with seeded random weights, as Hugging Face folders and GGUF.

  models.py folder MODEL OUT     config, float32 safetensors, a byte-level tokenizer
  models.py gguf FOLDER OUT      the same weights for llama.cpp, float32

Speed does not depend on what weights say, so these stand in for the checkpoints.
"""

import argparse
import json
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """`flops` counts multiplications and additions a token without the head, which peers apply to the last one only."""

    title: str
    decodes: bool
    config: str  # class of transformers
    options: dict
    flops: float


DECODER = dict(bos_token_id=0, eos_token_id=0)
MODELS = {
    "qwen2.5-0.5b": Model("Qwen2.5-0.5B shapes", True, "Qwen2Config", dict(
        DECODER, vocab_size=151936, hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
        intermediate_size=4864, max_position_embeddings=32768, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}), 2 * 357.9e6),
    "gpt2": Model("GPT-2 124M shapes", True, "GPT2Config", dict(
        DECODER, vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12), 2 * 85.0e6),
    "minilm": Model("MiniLM-L6 shapes, batch 32 x 128", False, "BertConfig", dict(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536),
        2 * 10.6e6),
    "bert-base": Model("BERT-base shapes, batch 32 x 128", False, "BertConfig", dict(
        vocab_size=30522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
        2 * 85.0e6),
    # to try the suite with: seconds instead of minutes
    "tiny": Model("tiny shapes", True, "Qwen2Config", dict(
        DECODER, vocab_size=512, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=256, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), 2 * 0.3e6),
}


def make_folder(name, out):
    import torch
    import transformers

    torch.manual_seed(0)
    model = MODELS[name]
    config = getattr(transformers, model.config)(**model.options)
    kind = transformers.AutoModelForCausalLM if model.decodes else transformers.AutoModel
    made = kind.from_config(config, dtype=torch.float32)
    made.save_pretrained(out)
    write_tokenizer(out, config.vocab_size)


def write_tokenizer(out, size):
    """Bytes as tokens, filled up to the vocabulary: exporters refuse a folder without one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = ["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words += [f"<{i}>" for i in range(len(words), size)]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(words[:1])
    tokenizer.save(os.path.join(out, "tokenizer.json"))
    with open(os.path.join(out, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", **dict.fromkeys(("bos_token", "eos_token"), words[0])},
                  file)


# Names of tensors within a layer, and the rest, as llama.cpp's files have them.
LLAMA = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
GPT2 = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "transformer.wte": "token_embd",
         "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm"}


def gguf_name(name):
    path, leaf = name.rsplit(".", 1)
    if path in WHOLE:
        return f"{WHOLE[path]}.{leaf}"
    prefix, layer, part = path.split(".", 3)[1:] if path.startswith(("model.", "transformer.")) else (None,) * 3
    return f"blk.{layer}.{(GPT2 if prefix == 'h' else LLAMA)[part]}.{leaf}"


def pair_neighbours(weight, heads):
    """Rows of queries or keys in the order of llama.cpp's Llama, which rotates neighbours instead of halves of a head."""
    outputs, inputs = weight.shape
    return weight.reshape(heads, 2, outputs // heads // 2, inputs).swapaxes(1, 2).reshape(outputs, inputs)


def add_tokenizer(writer, path):
    """The vocabulary and merges of a byte-level BPE, split as GPT-2 does."""
    import gguf

    with open(path, encoding="utf-8") as file:
        tokenizer = json.load(file)
    special = {token["id"] for token in tokenizer["added_tokens"]}
    ids = tokenizer["model"]["vocab"] | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(sorted(ids, key=ids.get))
    writer.add_token_types([gguf.TokenType.CONTROL if id in special else gguf.TokenType.NORMAL for id in sorted(ids.values())])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in tokenizer["model"]["merges"]])


def make_gguf(folder, out, tokenizer=None, context=None):
    """Of the weights of `folder`; without a tokenizer it has none, and `context` replaces the tokens that it was trained on."""
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    writer = gguf.GGUFWriter(out, config["model_type"])
    if config["model_type"] in ("qwen2", "llama"):
        width, feed, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
        heads, kv_heads, most = (config[key] for key in (
            "num_attention_heads", "num_key_value_heads", "max_position_embeddings"))
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
        size = config.get("head_dim") or width // heads
        writer.add_rope_dimension_count(size)
        writer.add_key_length(size)
        writer.add_value_length(size)
    else:
        width, layers, most = config["n_embd"], config["n_layer"], config["n_positions"]
        feed, heads, kv_heads = 4 * width, config["n_head"], config["n_head"]
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_block_count(layers)
    writer.add_context_length(context or most)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if tokenizer:
        add_tokenizer(writer, tokenizer)
    else:
        writer.add_tokenizer_model("none")
    for name, array in load_file(os.path.join(folder, "model.safetensors")).items():
        if config["model_type"] == "gpt2" and array.ndim == 2 and ".h." in name:
            array = np.ascontiguousarray(array.T)  # GPT-2 stores them input-major
        elif config["model_type"] == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            array = np.ascontiguousarray(pair_neighbours(array, heads if "q_proj" in name else kv_heads))
        writer.add_tensor(gguf_name(name), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["folder", "gguf"])
    parser.add_argument("source", help="a model's name, or the folder to read")
    parser.add_argument("out")
    parser.add_argument("--tokenizer", help="for gguf: tokenizer.json of a byte-level BPE")
    parser.add_argument("--context", type=int, help="for gguf: tokens that the model is said to be trained on")
    args = parser.parse_args()
    if args.what == "folder":
        make_folder(args.source, args.out)
    else:
        make_gguf(args.source, args.out, args.tokenizer, args.context)


if __name__ == "__main__":
    main()
