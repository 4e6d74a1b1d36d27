# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What onnxruntime answers, also where a file leaves open how activations are rounded.

`accuracy_level` of MatMulNBits is the least accuracy of activations inside the product. onnxruntime rounds them to 8 bits
where it is 4, and Hone to 8 bits, to bf16 or not at all, whichever is quicker for the processor and the number of rows. What
both stand for are the answers of the same file with activations as they are.
"""

import numpy as np
import onnx
import onnxruntime

import suite

# What a rounding of its own may cost beside onnxruntime's: a float that is summed in another order, or multiplied by a scale of f16, may
# fall to the other side of a tie, and be one level of one activation away. Of all outputs of a case together that changes little; one
# output of a model of two layers and 64 channels had between 0.93 and 1.13 of onnxruntime's error.
TIES = 0.05
TIES_OF_ONE = 0.25


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise suite.Failure(f"onnxruntime refuses {path.name}: {suite.one_line(str(error))}") from None


def all_nodes(graph):
    """The nodes of a graph and of the graphs inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from all_nodes(inner)


def keep_activations(model):
    """Lets no product of the model round activations; whether one did."""
    levels = [attribute for node in all_nodes(model.graph) if node.op_type == "MatMulNBits"
              for attribute in node.attribute if attribute.name == "accuracy_level" and attribute.i]
    for level in levels:
        level.i = 0
    return bool(levels)


def answer(session, cases):
    """The arrays of a .npz that holds the cases' inputs and what the session makes of them."""
    names = [output.name for output in session.get_outputs()]
    arrays = {}
    for case, inputs in cases.items():
        arrays |= {f"{case}/in/{name}": array for name, array in inputs.items()}
        arrays |= {f"{case}/out/{name}": array for name, array in zip(names, session.run(names, inputs))}
    return arrays


def without_rounding(path, folder):
    """A model whose stored answers round no activations: `path`, or a copy in `folder` that keeps them."""
    model = onnx.load(path, load_external_data=False)
    if not keep_activations(model):
        return path
    onnx.load_external_data_for_model(model, str(path.parent))
    copy = folder / "exact.onnx"
    onnx.save(model, copy)
    cases = {name: case["in"] for name, case in suite.stored_cases(path).items()}
    np.savez(copy.with_suffix(".npz"), **answer(open_session(copy), cases))
    return copy


def check_rounding(path, exact, run):
    """Whether the answers that `run` gives to a case's inputs are as near to those of `exact`, a copy by without_rounding, as
    onnxruntime's are, by the root of the mean square of an output's elements: all outputs together, and each."""
    rounded = suite.stored_cases(path)
    for label, case in suite.stored_cases(exact).items():
        got = run(case["in"])
        costs, limits = ({name: error(array[name], expected) for name, expected in case["out"].items()}
                         for array in (got, rounded[label]["out"]))
        for name, cost in costs.items():
            if not cost <= (1 + TIES_OF_ONE) * limits[name]:
                raise suite.Failure(f"{label}: rounding costs {cost:.3g} in '{name}', onnxruntime's {limits[name]:.3g}")
        cost, limit = (np.linalg.norm(list(errors.values())) for errors in (costs, limits))
        if not cost <= (1 + TIES) * limit:
            raise suite.Failure(f"{label}: rounding costs {cost:.3g} in all outputs together, onnxruntime's {limit:.3g}")


def error(got, expected):
    if got.shape != expected.shape:
        raise suite.Failure(f"expected an output of shape {expected.shape}, but got {got.shape}")
    return np.sqrt(np.mean(np.square(got - expected, dtype=np.float64))) if got.size else 0.0
