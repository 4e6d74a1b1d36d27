# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The table of what operators check of their inputs, from a run with extreme inputs.

import re
from collections import defaultdict

import onnx.defs

import extreme_models

HEADER = """# What operators check

Written by `test/differential/run-extremes.py --docs` from {calls} calls of {models} models, a few for each operator, in which one input
has extreme values or other sizes than the rest. For each input: the sentences with which a call ended, exit code 1. Nothing is said
of what the signature refuses before a call begins (types, ranks, sizes that the file fixes), nor of memory that there is not. Values
and sizes that are not refused have a result, by the operator's formula.

| operator | input | a call ends with |
| --- | --- | --- |
"""

# What holds for every operator.
GENERAL = re.compile(r"expected input '.*' to have shape|expected '.*' to be \d|cannot allocate|out of memory|cannot hold a tensor")


def name_input(model, name):
    """What the operator's schema calls the input of the model."""
    node = extreme_models.find_node(model.proto.graph, model.operator)
    place = list(node.input).index(name) if name in node.input else None
    if place is None or not onnx.defs.has(node.op_type, domain=node.domain):
        return name
    inputs = onnx.defs.get_schema(node.op_type, domain=node.domain).inputs
    return inputs[min(place, len(inputs) - 1)].name if inputs else name


def strip(text):
    """A message without the name of the node that it begins with."""
    return re.sub(r"^[\w./-]+: (?=expected|cannot|unsupported)", "", text).replace("|", "\\|")


def make_table(results):
    checks, calls = defaultdict(lambda: defaultdict(set)), 0
    for model, outcomes in results:
        checks[model.operator]  # an operator without a check has a row too
        for case, name, outcome, text in outcomes:
            calls += bool(name)
            if name and outcome == "refused" and not GENERAL.search(text):
                checks[model.operator][name_input(model, name)].add(strip(text))
    rows = []
    for operator in sorted(checks):
        inputs = checks[operator] or {"": set()}
        for name in sorted(inputs):
            rows.append(f"| {operator} | {name} | {'; '.join(sorted(inputs[name]))} |")
    return HEADER.format(calls=calls, models=len(results)) + "\n".join(rows) + "\n"
