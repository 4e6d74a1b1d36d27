# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of the operators of com.microsoft that the installed onnxruntime lists: which work, and why others do not."""

import pathlib
import tempfile

import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_state

import suite

TITLE = """# Operators of com.microsoft

Written by `test/differential/run-microsoft.py --docs` from a run of its cases ({passed} of {all} pass), each compared with onnxruntime
{version}, for each of the {count} operators that it lists. *Works* says how many cases of the operator pass, or which other suite runs it;
with a star they are compared with nodes of ONNX that mean the same, as onnxruntime has no kernel of the operator for the CPU.

| operator | works | why not |
| --- | --- | --- |
"""
# Operators whose cases are those of another suite.
ELSEWHERE = {"GatherBlockQuantized": "run-extremes", "GroupQueryAttention": "run-group-query", "MatMulNBits": "run-ort-tools",
             "MoE": "run-experts", "QMoE": "run-experts", "RotaryEmbedding": "run-models"}


def is_known(operator, schema, tools, folder):
    """Whether hone has the operator, which it says of a node of it before anything else."""
    names = [f"in{i}" for i in range(schema.min_input)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    node = helper.make_node(operator, names, ["out"], domain="com.microsoft")
    graph = helper.make_graph([node], operator, infos, [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]),
              folder / "probe.onnx")
    try:
        suite.run_tool([tools / "hone", "compile", folder / "probe.onnx", "-o", folder / "probe.hone"])
    except suite.Failure as failure:
        return "unsupported operator" not in str(failure)
    return True


def row(operator, schema, outcomes, has_kernel, tools, folder):
    if outcomes:
        reasons = sorted({reason for reason in outcomes.values() if reason})
        star = "" if has_kernel else " \\*"
        return f"| {operator} | {sum(not reason for reason in outcomes.values())}/{len(outcomes)}{star} | {'; '.join(reasons)} |"
    if operator in ELSEWHERE:
        return f"| {operator} | {ELSEWHERE[operator]} |  |"
    if is_known(operator, schema, tools, folder):
        return f"| {operator} |  | compiles, and onnxruntime has no kernel of it for the CPU to compare with |"
    return f"| {operator} |  | refused by name{'' if has_kernel else '; onnxruntime has no kernel of it for the CPU'} |"


def write(cases, outcomes, tools):
    schemas = {schema.name: schema for schema in onnxruntime_state.get_all_operator_schema() if schema.domain == "com.microsoft"}
    kernels = {kernel.op_name for kernel in onnxruntime_state.get_all_opkernel_def() if kernel.domain == "com.microsoft"}
    title = TITLE.format(passed=sum(not reason for reason in outcomes.values()), all=len(outcomes), version=onnxruntime.__version__,
                         count=len(schemas))
    with tempfile.TemporaryDirectory() as name:
        rows = [row(operator, schema, {case: outcomes[case] for case in cases if cases[case].operator == operator}, operator in kernels,
                    tools, pathlib.Path(name)) for operator, schema in sorted(schemas.items())]
    return title + "\n".join(rows) + "\n"
