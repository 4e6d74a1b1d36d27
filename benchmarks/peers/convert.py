# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a Hugging Face folder to ONNX, and on to the quantized forms of onnxruntime.

  convert.py onnx FOLDER OUT.onnx     torch.onnx.export (dynamo), opset 21, float32. A decoder takes input_ids,
                                      attention_mask, position_ids and its cache, and gives the last position's logits
  convert.py trained FOLDER OUT.onnx  the same with the logits of all positions, which training needs
  convert.py int8 IN.onnx OUT.onnx    quantize_dynamic: weights of a scale an output, activations at run time
  convert.py int4 IN.onnx OUT.onnx    MatMulNBits, blocks of 32, symmetric, activations of 8 bits
"""

import argparse


LAST, ALL = 1, 0  # of positions, as transformers has `logits_to_keep`


def export(folder, out, logits=LAST):
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    program = export_encoder(folder, torch) if config.model_type == "bert" else export_decoder(folder, config, logits, torch)
    program.save(out, external_data=True)


def export_trained(folder, out):
    export(folder, out, ALL)


def export_encoder(folder, torch):
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    ids = torch.ones(2, 5, dtype=torch.long)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    return torch.onnx.export(
        Encoder(), (ids, ids.clone()), dynamo=True, opset_version=21,
        dynamic_shapes=({0: "batch", 1: "sequence"}, {0: "batch", 1: "sequence"}),
        input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"])


def export_decoder(folder, config, logits, torch):
    from transformers import AutoModelForCausalLM, DynamicCache

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = config.hidden_size // config.num_attention_heads

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, position_ids, past):
            result = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                                past_key_values=DynamicCache(list(zip(past[0::2], past[1::2]))), use_cache=True,
                                logits_to_keep=logits)
            present = [part for layer in result.past_key_values.layers for part in (layer.keys, layer.values)]
            return (result.logits, *present)

    names = [f"{layer}.{part}" for layer in range(config.num_hidden_layers) for part in ("key", "value")]
    past = [torch.zeros(2, heads, 5, size) for _ in names]
    inputs = (torch.ones(2, 3, dtype=torch.long), torch.ones(2, 8, dtype=torch.long),
              torch.arange(5, 8).expand(2, 3).clone(), past)
    return torch.onnx.export(
        Step(), inputs, dynamo=True, opset_version=21,
        dynamic_shapes=({0: "batch", 1: "sequence"}, {0: "batch", 1: "total"}, {0: "batch", 1: "sequence"},
                        [{0: "batch", 2: "past"}] * len(names)),
        input_names=["input_ids", "attention_mask", "position_ids", *("past_key_values." + name for name in names)],
        output_names=["logits", *("present." + name for name in names)])


def load_for_quantizers(path):
    """The model with Gemm as MatMul and weights transposed where the graph does it: what the quantizers look for."""
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnxruntime.quantization.onnx_model import ONNXModel

    model = ONNXModel(onnx.load(path))
    model.replace_gemm_with_matmul()
    graph = model.model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "Transpose" and n.input[0] in weights]:
        order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        array = np.ascontiguousarray(numpy_helper.to_array(weights[node.input[0]]).transpose(order))
        graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for tensor in [t for t in graph.initializer if t.name not in used]:
        graph.initializer.remove(tensor)
    return model.model


def quantize_int8(source, out):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(load_for_quantizers(source), out, per_channel=True, weight_type=QuantType.QInt8,
                     op_types_to_quantize=["MatMul"], use_external_data_format=True,
                     extra_options={"MatMulConstBOnly": True})


def quantize_int4(source, out):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(load_for_quantizers(source), bits=4, block_size=32, is_symmetric=True,
                                     accuracy_level=4)
    quantizer.process()
    quantizer.model.save_model_to_file(out, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["onnx", "trained", "int8", "int4"])
    parser.add_argument("source")
    parser.add_argument("out")
    args = parser.parse_args()
    {"onnx": export, "trained": export_trained, "int8": quantize_int8, "int4": quantize_int4}[args.what](args.source, args.out)


if __name__ == "__main__":
    main()
