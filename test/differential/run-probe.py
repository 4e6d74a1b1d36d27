# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Points that `hone plan --probe` measures, against what `hone export`, `hone tune` and numpy make of the same model, and what `hone tune
--prune=auto` does with them.
"""

import functools
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import suite

MODEL = suite.ROOT / "examples" / "python-lm"
CONTEXT, BATCH = 32, 2
STEP = CONTEXT * BATCH
RATES, BUDGETS = (10, 20, 30), (4 * STEP, 8 * STEP + 1, 16 * STEP)
SIZES = [f"--context={CONTEXT}", f"--batch={BATCH}", "--threads=1", "--learning-rate=3e-4"]
# Of losses: a model that is pruned while it is compiled has the weights of the file that `hone export` writes, and other sums.
SAME_LOSS = 1e-4
# A law that six points are fitted to says less than this of a seventh, of the loss.
PREDICTED = 0.05


class Folder:
    """Texts of the checkout, and the commands on them."""

    def __init__(self, tools, path):
        self.tools, self.path = tools, pathlib.Path(path)
        sources = sorted((suite.ROOT / "test" / "differential").glob("*.py"))
        self.data = [f"--data={file}" for file in sources[1:6]]
        self.rest = [f"--valid={sources[0]}", f"--tokenizer={MODEL / 'tokenizer.json'}", *SIZES]

    def run(self, command, *options):
        return suite.run_tool([self.tools / "hone", command, *options])

    def probe(self, *options, points="points.jsonl"):
        said = self.run("plan", "--probe", MODEL / "model.onnx", *self.data, *self.rest, "-o", self.path / points, *options)
        return said, [json.loads(line) for line in (self.path / points).read_text().splitlines()]

    def tune(self, model, tokens, *options):
        return self.run("tune", model, *self.data, *self.rest, f"--steps={tokens // STEP}", "-o", self.path / "tuned.onnx", *options)


def structured(rates=RATES, budgets=BUDGETS):
    return ["--prune=structured", f"--rates={','.join(f'{rate}%' for rate in rates)}", f"--budgets={','.join(map(str, budgets))}"]


def floats(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer
            if tensor.data_type == onnx.TensorProto.FLOAT}


def losses(said):
    """On --valid, before and after."""
    return [float(number) for number in re.search(r"loss on --valid (\S+) before, (\S+) after", said).groups()]


def require(condition, what):
    if not condition:
        raise suite.Failure(what)


def check_points(tools):
    """Each is of a model that was pruned so much and trained on from there; what is known is not measured again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(tools, name)
        _, points = folder.probe(*structured(budgets=BUDGETS[:2]))
        text = (folder.path / "points.jsonl").read_text()
        require([point["tokens"] for point in points] == [4 * STEP, 8 * STEP] * 3, f"the points are of {[point['tokens'] for point in points]}")
        for point, rate in zip(points, np.repeat(RATES, 2), strict=True):
            require(abs(point["rate"] - rate / 100) < 0.01 and point["kind"] == "structured", f"a point of {rate} % has the rate {point['rate']}")
        said, again = folder.probe(*structured(budgets=BUDGETS[:2]))
        require((folder.path / "points.jsonl").read_text() == text and again == points, "known points are measured again")
        _, more = folder.probe(*structured(budgets=BUDGETS))
        require(more[:6] == points and len(more) == 9, f"{len(more)} points after three more")
        folder.run("export", MODEL / "model.onnx", "--prune=structured", "--sparsity=20%", "-o", folder.path / "pruned.onnx", "--quiet")
        loss = losses(folder.tune(folder.path / "pruned.onnx", BUDGETS[1]))[1]
        require(abs(points[3]["loss"] - loss) <= SAME_LOSS * loss, f"the loss of a point is {points[3]['loss']}, of hone tune {loss}")
        dense = losses(folder.tune(MODEL / "model.onnx", STEP))[0]
        require(abs(points[0]["dense_loss"] - dense) <= SAME_LOSS * dense, f"the dense loss is {points[0]['dense_loss']}, not {dense}")
        check_plan(folder, more)


def check_plan(folder, points):
    """The model gets the largest rate that reaches a loss between those of two rates, and about that loss."""
    reached = {round(point["rate"], 1): point["loss"] for point in points if point["tokens"] == 16 * STEP}
    target = (reached[0.1] + reached[0.2]) / 2
    planned = [f"--points={folder.path / 'points.jsonl'}", "--prune=auto"]
    said = folder.tune(MODEL / "model.onnx", 16 * STEP, *planned, f"--target-loss={target}")
    rate = float(re.search(r"planned: structured, (\S+)% of the parameters", said).group(1)) / 100
    require(0.1 < rate < 0.2, f"{rate} is planned for a loss between those of 0.1 and 0.2")
    predicted = float(re.search(r"predicted (\S+) \[", said).group(1))
    require(abs(predicted - target) <= 1e-3 * target, f"{predicted} is predicted for the target {target}")
    loss = losses(said)[1]
    require(abs(loss - predicted) <= PREDICTED * predicted, f"{predicted} is predicted, and {loss} reached")
    sizes = [sum(array.size for array in floats(path).values()) for path in (MODEL / "model.onnx", folder.path / "tuned.onnx")]
    require(abs(1 - sizes[1] / sizes[0] - rate) < 0.01, f"{1 - sizes[1] / sizes[0]} of the elements are gone, not {rate}")
    for options, message in (
            (["--target-loss=0.5"], "no rate of the points reaches a loss of 0.5 after 1024 tokens; the least loss that the law gives"),
            ([], "expected --points, --target-loss and --valid with --prune=auto")):
        suite.expect_failure(lambda options=options: folder.tune(MODEL / "model.onnx", 16 * STEP, *planned, *options), message)


def check_pattern(tools):
    """Of N:M the rate is the share of zeros, which stay; hone tune with the same options reaches the same loss, with a teacher too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(tools, name)
        np.save(folder.path / "tokens.npy", np.random.default_rng(1).integers(2, 2048, 512).astype(np.int32))
        statistics = folder.path / "statistics.safetensors"
        folder.run("calibrate", MODEL / "model.onnx", "--tokens", folder.path / "tokens.npy", "--window=64", "-o", statistics)
        pruned = ["--prune=2:4", f"--calibration={statistics}"]
        _, points = folder.probe(*pruned, f"--budgets={BUDGETS[0]}")
        loss = losses(folder.tune(MODEL / "model.onnx", BUDGETS[0], *pruned))[1]
        require(abs(points[0]["loss"] - loss) <= SAME_LOSS * loss, f"the loss of the point is {points[0]['loss']}, of hone tune {loss}")
        before, after = floats(MODEL / "model.onnx"), floats(folder.path / "tuned.onnx")
        zeros = sum(int((array == 0).sum()) for array in after.values()) - sum(int((array == 0).sum()) for array in before.values())
        size = sum(array.size for array in before.values())
        require(abs(points[0]["rate"] - zeros / size) < 1e-3 and zeros > 0, f"the rate is {points[0]['rate']}, and {zeros / size} are zeros")
        require(points[0]["kind"] == "2:4" and abs(points[0]["parameters"] / size - 1) < 0.01, f"the point is {points[0]} of {size}")
        distilled = [*pruned, "--teacher=dense", "--feature-weight=1"]
        _, points = folder.probe(*distilled, f"--budgets={BUDGETS[0]}")
        found, loss = points[1]["loss"], losses(folder.tune(MODEL / "model.onnx", BUDGETS[0], *distilled))[1]
        require(abs(found - loss) <= SAME_LOSS * loss, f"the loss of the distilled point is {found}, of hone tune {loss}")
        require(abs(found - points[0]["loss"]) > SAME_LOSS * loss, "a teacher changes nothing")


BAD = {
    "rates": (structured(rates=[0]), "expected --rates to be shares of the parameters, such as 10%,25%, but got '0%'"),
    "budgets": (structured(budgets=[STEP - 1]), f"expected --budgets to be numbers of tokens, each at least a step of {STEP}, but got '63'"),
    "pattern": (["--prune=3:2", "--budgets=64"], "3"),
    "no-pruning": (["--budgets=64"], "expected --prune and --valid with --probe"),
}


def check_bad(name, tools):
    options, message = BAD[name]
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(tools, path)
        suite.expect_failure(lambda: folder.probe(*options), message)
        require(not list(folder.path.iterdir()), "something is written")


def check_other_file(tools):
    """What has no points is not written over."""
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(tools, path)
        (folder.path / "points.jsonl").write_text("notes\n")
        suite.expect_failure(lambda: folder.probe(*structured()), "points.jsonl:1: ")
        require((folder.path / "points.jsonl").read_text() == "notes\n", "another file is written over")


def all_cases():
    yield "structured", check_points
    yield "2:4", check_pattern
    for name in BAD:
        yield f"bad/{name}", functools.partial(check_bad, name)
    yield "bad/other-file", check_other_file


if __name__ == "__main__":
    sys.exit(suite.run_main(__doc__, list(all_cases())))
