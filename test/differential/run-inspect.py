# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is recognised in each model: its attention layers, what their queries see, blocks of experts, and its state.

models.attention says what each model is, from its architecture and configuration; `hone inspect` must find that.
"""

import json
import pathlib
import sys

import suite

TABLE = pathlib.Path(__file__).with_name("models.attention")


def layer_text(layer):
    pattern = layer["pattern"].removeprefix("#hone.").replace("window = ", "")
    extra = "".join(f"+{part}" for part in ("bias", "alibi", "sinks") if layer[part])
    return f"{pattern}{extra} {layer['heads']}/{layer['kv_heads']}"


def function_text(function):
    """Patterns of @forward; of @main, whose masks are inputs, only how many layers there are."""
    layers = function["attention"]
    if function["name"] != "forward":
        return f"{function['name']} {len(layers)}"
    experts = function["raised"].get("hone.moe", 0)
    return f"forward {', '.join(map(layer_text, layers))}" + (f", {experts} of experts" if experts else "")


def describe(path, tools):
    model = json.loads(suite.run_tool([tools / "hone", "inspect", path, "--json"]))
    return "; ".join([*map(function_text, model["functions"]), f"state {len(model['state'])}"])


def read_table():
    rows = (line.partition(": ") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: text for name, _, text in rows}


def check(name, path, tools, table):
    if name not in table:
        raise suite.Failure(f"{TABLE.name} has no line for it")
    found = describe(path, tools)
    if found != table[name]:
        raise suite.Failure(f"expected {table[name]}, but found {found}")


def main():
    options = suite.parser(__doc__).parse_args()
    tools, table = options.build / "bin", read_table()
    cases = [(name, (name, path)) for name, path in suite.models().items() if options.only in name]
    return suite.run_all(cases, lambda case: check(*case, tools, table), options.jobs)


sys.exit(main())
