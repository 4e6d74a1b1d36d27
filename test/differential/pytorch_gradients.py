# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For run-pytorch-gradients.py, run by an interpreter with PyTorch and transformers: makes decoders, exports them, and writes their gradients.

  pytorch_gradients.py OUT [FOLDER ...]     small random decoders, and those of these folders in Hugging Face's form

Of each, OUT gets NAME.onnx, and NAME.npz with `ids` and `targets` [B, T], `loss`, the gradient of the loss by each PARAMETER, and `names` in
JSON: of each initializer of the file the parameter whose values it has, and whether it has them transposed. Where the exporter computed
constants of a parameter (FOLDED), the gradient is that by these.
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
import transformers
from onnx import numpy_helper

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "vocab_size": 97, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None, "tie_word_embeddings": False}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
MODELS = {
    "dense": ("LlamaConfig", {"num_key_value_heads": 4}),
    "gqa": ("Qwen3Config", {}),
    "tied": ("Qwen2Config", {"tie_word_embeddings": True}),
    "moe": ("Qwen3MoeConfig", EXPERTS),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "gated-delta": ("Qwen3NextConfig", {**EXPERTS, "shared_expert_intermediate_size": 48, "layer_types": ["linear_attention", "full_attention"],
                                        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
                                        "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "partial_rotary_factor": 0.5}),
}
TOKENS = (2, 24)


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def make(name):
    config, options = MODELS[name]
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, config)(**{**SIZES, **options}), attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)  # initializers are told apart by their values, of which gains have ones
    return model


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")


# What an exporter makes of parameters, and its derivative: gains of 1 + w, and decays of -exp(w).
FOLDED = [(lambda w: w, np.ones_like), (lambda w: 1 + w, np.ones_like), (lambda w: -np.exp(w), lambda w: -np.exp(w))]


def name_initializers(path, parameters):
    """Of each initializer that has the values of a parameter: its name, and whether it is transposed; and of the parameter what was folded."""
    names, folded = {}, {}
    for tensor in onnx.load(path).graph.initializer:
        array = numpy_helper.to_array(tensor)
        for name, value in parameters.items():
            for transposed in (False, True):
                for function, derivative in FOLDED:
                    expected = function(value.swapaxes(-1, -2) if transposed and value.ndim > 1 else value)
                    if tensor.name not in names and array.shape == expected.shape and np.allclose(array, expected, rtol=1e-6, atol=0):
                        names[tensor.name], folded[name] = (name, transposed), derivative(value)
    return names, folded


def write(model, name, out):
    model.eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("batched_mm")  # the default has no ONNX translation
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, model.config.vocab_size, (TOKENS[0], TOKENS[1] + 1)))
    ids, targets = tokens[:, :-1], tokens[:, 1:].contiguous()
    torch.onnx.export(Logits(model), (ids,), dynamo=True, opset_version=21, input_names=["input_ids"],
                      output_names=["logits"], verbose=False).save(out / f"{name}.onnx")
    loss = torch.nn.functional.cross_entropy(Logits(model)(ids).flatten(0, 1), targets.flatten())
    loss.backward()
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.grad is not None}
    names, folded = name_initializers(out / f"{name}.onnx", {name: parameter.detach().numpy() for name, parameter in parameters.items()})
    np.savez(out / f"{name}.npz", ids=ids.numpy(), targets=targets.numpy(), loss=loss.detach().numpy(), names=np.array(json.dumps(names)),
             **{name: parameter.grad.numpy() / folded.get(name, 1) for name, parameter in parameters.items()})


def main():
    warnings.simplefilter("ignore")
    out = pathlib.Path(sys.argv[1])
    for name in MODELS:
        write(make(name), name, out)
    for folder in sys.argv[2:]:
        write(load(folder), pathlib.Path(folder).parent.name, out)


main()
