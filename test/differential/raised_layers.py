# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many layers of attention, norms, MLPs and blocks of experts a model has, from its architecture, and how many `hone inspect` finds."""

import json

import suite

KINDS = ("attention", "norms", "MLPs", "experts")
OPERATIONS = {"attention": ("attention",), "norms": ("layer_norm", "rms_norm", "group_norm"), "MLPs": ("mlp", "gated_mlp"), "experts": ("moe",)}
# Layers of the zoo's architectures, which all have two: one norm before each block and one at the end is five; bert and distilbert have
# one for embeddings instead. qwen3 and gemma3 normalise queries and keys as well, gemma2 and gemma3 what blocks give, deepseek_v3 two
# latents, of which one is of queries. A decoder that attends to an encoder has two attentions and three norms a layer, and a merged one has
# each twice, for its first step and for others. deepseek_v3 has a dense layer, a layer of experts, and an MLP that all tokens share.
LAYERS = {
    "bert": (2, 5, 2, 0), "bloom": (2, 6, 2, 0), "deepseek_v3": (2, 9, 2, 1), "distilbert": (2, 5, 2, 0), "gemma2": (2, 9, 2, 0),
    "gemma3": (2, 13, 2, 0), "gpt2": (2, 5, 2, 0), "llama": (2, 5, 2, 0), "mistral": (2, 5, 2, 0), "mixtral": (2, 5, 0, 2), "opt": (2, 5, 2, 0),
    "phi3": (2, 5, 2, 0), "qwen2": (2, 5, 2, 0), "qwen3": (2, 9, 2, 0), "qwen3_moe": (2, 9, 0, 2), "t5": (2, 5, 2, 0), "vit": (2, 5, 2, 0),
    "whisper": (2, 5, 2, 0), "decoder": (4, 7, 2, 0), "merged": (8, 14, 4, 0),
}


def expected(path):
    """Layers of a model of the zoo by kind."""
    name = path.parent.name.split(".")[0]
    if path.stem.startswith("decoder"):
        name = "merged" if path.stem.endswith("merged") else "decoder"
    return dict(zip(KINDS, LAYERS[name]))


def found(path, tools):
    """Layers by kind that are operations of hone in the function that has the model's own inputs."""
    raised = json.loads(suite.run_tool([tools / "hone", "inspect", path, "--json"]))["functions"][0]["raised"]
    return {kind: sum(raised.get(f"hone.{operation}", 0) for operation in OPERATIONS[kind]) for kind in KINDS}


def lacking(wanted, got):
    """What is missing, in words; an expert that is an MLP of its own stands for no layer."""
    return ", ".join(f"{kind} {min(got[kind], wanted[kind])}/{wanted[kind]}" for kind in KINDS if got[kind] < wanted[kind])
