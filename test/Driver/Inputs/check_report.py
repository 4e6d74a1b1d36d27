# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_report.py REPORT.json ARTEFACT PAGE [--steps PASSES]: whether the numbers of a report go together and with the artefact.
PASSES are those that changed at least one weight one after the other."""

import argparse
import json
import math
import pathlib
import subprocess

import check_page


def squares(weight, kind):
    """The root of the sum of squares of a weight's steps, or None where one is not known."""
    changed = [step[kind] for step in weight["steps"] if step["changed"] and step["weight_error"] != 0]
    return None if not changed or None in changed else math.sqrt(sum(error * error for error in changed))


def check_weight(weight):
    assert weight["shape"] == weight["shape_before"]
    assert weight["form_before"] in ("f32", "#hone.stored<f32, transposed>"), weight
    elements = math.prod(weight["shape"])
    assert weight["bytes_before"] == 4 * elements
    assert math.isclose(weight["bits_per_weight"], 8 * weight["bytes"] / elements)
    assert weight["changed"] == any(step["changed"] for step in weight["steps"])
    for kind in ("weight_error", "output_error"):
        expected = squares(weight, kind)
        assert (weight[kind] is None) == (expected is None), weight
        assert expected is None or math.isclose(weight[kind], expected)
    if weight["changed"]:
        assert 0 < weight["weight_error"] < 1
    else:
        assert weight["steps"] and all(step["text"] for step in weight["steps"])  # why not


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report")
    parser.add_argument("artefact")
    parser.add_argument("page")
    parser.add_argument("--steps", default="")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text())
    weights, totals = report["weights"], report["totals"]
    assert (report["format"], report["version"]) == ("hone-report", 1)
    for weight in weights:
        check_weight(weight)
    assert len({weight["name"] for weight in weights}) == len(weights) == totals["weights"]
    assert totals["changed"] == sum(weight["changed"] for weight in weights)
    for key in ("bytes", "bytes_before"):
        assert totals[key] == sum(weight[key] for weight in weights)
    elements = sum(math.prod(weight["shape"]) for weight in weights)
    assert math.isclose(totals["bits_per_weight"], 8 * totals["bytes"] / elements)
    # Kernels pad what they read, by far less than a tenth here.
    size = (pathlib.Path(options.artefact) / "weights.safetensors").stat().st_size
    assert totals["bytes"] <= size < 1.1 * totals["bytes"], (totals["bytes"], size)
    command = ["hone", "eval", options.artefact, "--tokens", "good.npy", "--window", "32", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert math.isclose(found["perplexity"], report["after"]["perplexity"], rel_tol=1e-5)
    assert report["before"]["perplexity"] != report["after"]["perplexity"]
    if options.steps:
        chains = [[step["pass"] for step in weight["steps"] if step["changed"]] for weight in weights]
        assert options.steps.split(",") in chains, chains
        assert any(weight["output_error"] for weight in weights)
    page = check_page.check(options.page)
    assert page.counts["tr"] >= len(weights), page.counts
    # A cell of errors and one of bits for each matrix, and each reason once.
    matrices = sum(len(weight["shape"]) > 1 for weight in weights)
    assert page.heats == 2 * matrices, (page.heats, matrices)
    assert page.counts["li"] <= len({tuple(step["text"] for step in weight["steps"]) for weight in weights}), page.counts


main()
