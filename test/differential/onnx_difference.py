# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first thing that two ONNX models say differently.

Equal are: the two spellings of the default domain, the order of attributes, opset imports and value infos, the field that
holds a tensor's elements, where they are stored, and whether those of an initializer are stored with their zeros. A model with functions of its own is read as the graph that inlining
them makes, so of such a model the nodes are not compared.
"""

import numpy as np
import onnx
from onnx import numpy_helper

# Written by onnxruntime's builders in the default domain, where the standard has none of these names.
MICROSOFT = {"SkipSimplifiedLayerNormalization", "SkipLayerNormalization"}


def find(original, exported):
    """A sentence, or None."""
    a, b = onnx.ModelProto(), onnx.ModelProto()
    a.CopyFrom(original)
    b.CopyFrom(exported)
    if a.functions:
        for model in a, b:
            del model.functions[:], model.graph.node[:], model.graph.value_info[:], model.opset_import[:]
            del model.graph.initializer[:]
    for model in a, b:
        normalize_model(model)
    return compare("", a, b)


def normalize_model(model):
    for opset in model.opset_import:
        opset.domain = "" if opset.domain == "ai.onnx" else opset.domain  # says the default aloud
    domains = {opset.domain for opset in model.opset_import}
    normalize_graph(model.graph)
    used = {node.domain for node in model.graph.node}
    if "com.microsoft" in used and "com.microsoft" not in domains:
        model.opset_import.add(domain="com.microsoft", version=1)
    model.opset_import.sort(key=lambda opset: opset.domain)


def normalize_graph(graph):
    graph.value_info.sort(key=lambda info: info.name)
    for tensor in graph.sparse_initializer:
        graph.initializer.add().CopyFrom(densified(tensor))
    del graph.sparse_initializer[:]
    graph.initializer.sort(key=lambda tensor: tensor.name)
    for tensor in graph.initializer:
        normalize_tensor(tensor)
    for node in graph.node:
        normalize_node(node)


def normalize_node(node):
    node.domain = "" if node.domain == "ai.onnx" else node.domain
    if node.op_type in MICROSOFT:
        node.domain = "com.microsoft"
    node.attribute.sort(key=lambda attribute: attribute.name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            normalize_graph(attribute.g)
        if attribute.HasField("t"):
            normalize_tensor(attribute.t)
    # Empty names at the end stand for nothing.
    for names in node.input, node.output:
        while names and not names[-1]:
            names.pop()


def normalize_tensor(tensor):
    if tensor.data_type == onnx.TensorProto.STRING:
        return
    data = numpy_helper.to_array(tensor).tobytes()
    for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "data_location",
                  "external_data"):
        tensor.ClearField(field)
    tensor.raw_data = data


def densified(sparse):
    """A sparse initializer as the dense one that it stands for."""
    dense = np.zeros(list(sparse.dims), numpy_helper.to_array(sparse.values).dtype)
    indices = numpy_helper.to_array(sparse.indices)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(indices.T, dense.shape)
    dense.reshape(-1)[flat] = numpy_helper.to_array(sparse.values)
    return numpy_helper.from_array(dense, sparse.values.name)


def label(message, index):
    name = getattr(message, "name", "") or getattr(message, "key", "")
    return f"[{index}{' ' + name if name else ''}]"


def show(value):
    text = repr(value) if not hasattr(value, "ListFields") else " ".join(str(value).split())
    return text if len(text) < 80 else text[:77] + "..."


def compare(path, a, b):
    if not hasattr(a, "ListFields"):
        return None if a == b else f"expected {path} to be {show(a)}, but got {show(b)}"
    if a == b:
        return None
    for field in a.DESCRIPTOR.fields:
        difference = compare_field(f"{path}.{field.name}".lstrip("."), field, a, b)
        if difference:
            return difference
    return f"expected {path} to be {show(a)}, but got {show(b)}"


def compare_field(path, field, a, b):
    x, y = getattr(a, field.name), getattr(b, field.name)
    if hasattr(x, "extend"):
        for i, (left, right) in enumerate(zip(x, y)):
            difference = compare(path + label(left, i), left, right)
            if difference:
                return difference
        if len(x) != len(y):
            extra = max(x, y, key=len)[min(len(x), len(y))]
            return f"expected {len(x)} of {path}, but got {len(y)}; one has {show(extra)}"
        return None
    if field.message_type and a.HasField(field.name) != b.HasField(field.name):
        return f"expected {path} to be {show(x) or 'absent'}, but got {show(y) or 'none'}"
    return compare(path, x, y)
