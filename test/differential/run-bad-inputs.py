# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are cut short or damaged: every tool says so in one line and exits 1, or does its work; none is ended by a
signal, none calls it a bug of its own, and none leaves anything behind.

What is cut and damaged comes from fixed seeds: models, artefacts file by file, manifests value by value, arrays, IR of a file and
of compressed models, statistics and tokenizers.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import small_model
import suite

TIMEOUT_SECONDS = 120
CUTS, FLIPS = 5, 12  # of each model that is only read; compilation gets a part of them
TOKENIZER = suite.ROOT / "examples" / "python-lm" / "tokenizer.json"


def seeded(name):
    return random.Random(name)


def cut(data, count, name):
    """(what, bytes) of files that end early: at the ends of what a reader reads first, and anywhere."""
    source = seeded(name + "cut")
    ends = [0, 1, len(data) - 1] + [source.randrange(len(data)) for _ in range(count)]
    return [(f"cut at {end}", data[:end]) for end in ends[:count]]


def flip(data, count, name, span=None):
    """(what, bytes) with one to three bits of the first `span` bytes turned over."""
    source = seeded(name + "flip")
    damaged = []
    for _ in range(count):
        copy = bytearray(data)
        places = [source.randrange(min(span or len(data), len(data)) * 8) for _ in range(source.randint(1, 3))]
        for place in places:
            copy[place // 8] ^= 1 << place % 8
        damaged.append((f"flipped {places}", bytes(copy)))
    return damaged


def changed_values(document):
    """(what, document) with one value of a JSON document left out, or replaced by one of each kind."""
    replacements = [None, -1, 10**30, 1.5, "", "x" * 300, [], {}, [[]], True]

    def places(value, path):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in items:
            yield path + [key]
            yield from places(child, path + [key])

    for path in places(document, []):
        for replacement in ["left out"] + replacements:
            copy = json.loads(json.dumps(document))
            holder = copy
            for key in path[:-1]:
                holder = holder[key]
            if replacement == "left out":
                del holder[path[-1]]
            else:
                holder[path[-1]] = replacement
            yield f"{'.'.join(map(str, path))} {json.dumps(replacement)[:20]}", copy


class Bench:
    """Runs the tools in a folder of its own, and looks at what they leave."""

    def __init__(self, tools):
        self.tools = tools

    def check(self, what, files, command, must_fail, reuse=None):
        """Writes `files` into a new folder, where `command` then runs. `reuse` is a folder to copy there first."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if reuse:
                shutil.copytree(reuse, folder / reuse.name)
            for path, data in files.items():
                (folder / path).unlink(missing_ok=True)
                if data is not None:
                    (folder / path).write_bytes(data)
            before = self.list(folder)
            self.run(what, command, folder, must_fail)
            left = self.list(folder) - before - {"out", "out/manifest.json", "out/program.so", "out/weights.safetensors"}
            if left:
                raise suite.Failure(f"{what}: left {sorted(left)}")

    def run(self, what, command, folder, must_fail):
        try:
            result = subprocess.run([str(self.tools / command[0]), *command[1:]], cwd=folder, capture_output=True,
                                    stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise suite.Failure(f"{what}: {command[0]} did not end in {TIMEOUT_SECONDS} s") from None
        text = result.stderr.decode(errors="replace")
        errors = [line for line in text.splitlines() if line.startswith("hone") and ": note: " not in line]
        if result.returncode not in (0, 1):
            raise suite.Failure(f"{what}: {command[0]} ended with {result.returncode}: {suite.one_line(text)}")
        if result.returncode == 0 and must_fail:
            raise suite.Failure(f"{what}: {command[0]} did not notice")
        if result.returncode == 1 and not errors:
            raise suite.Failure(f"{what}: {command[0]} failed without a word: {suite.one_line(text)}")

    @staticmethod
    def list(folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def model_cases(path, bench):
    """Every model is read; the smallest ones go through the whole compiler."""
    data = path.read_bytes()
    extra = {file.name: file.read_bytes() for file in path.parent.glob("*.data")}
    name = path.parent.name
    for what, damaged in cut(data, CUTS, name) + flip(data, FLIPS // 2, name) + flip(data, FLIPS, name + "head", 30_000):
        yield f"{name} {what}", {**extra, "m.onnx": damaged}, ["hone", "import", "m.onnx", "-o", "out"], False
    for file, content in extra.items():
        for what, damaged in [("missing", None)] + cut(content, 3, name):
            yield f"{name} {file} {what}", {**extra, "m.onnx": data, file: damaged}, ["hone", "compile", "m.onnx", "-o", "out"], True
    if len(data) < 30_000 or name == "gpt2.optimum":
        for what, damaged in flip(data, FLIPS // 2, name + "compile", 30_000):
            yield f"{name} {what}", {**extra, "m.onnx": damaged}, ["hone", "compile", "m.onnx", "-o", "out"], False


def ir_cases(path, tools, folder):
    """The IR of a model as text and as bytecode."""
    for form in "mlir", "mlirbc":
        ir = folder / f"m.{form}"
        subprocess.run([tools / "hone", "import", path, "-o", ir], check=True)
        data = ir.read_bytes()
        for what, damaged in cut(data, CUTS, form) + flip(data, FLIPS, form, 30_000):
            yield f"{form} {what}", {ir.name: damaged}, ["hone", "export", ir.name, "-o", "out"], False


def changed(data, count, name):
    """(what, bytes) of files in which a few bytes are others, missing, or those of another place."""
    source = seeded(name + "changed")
    damaged = []
    for _ in range(count):
        copy, place, size = bytearray(data), source.randrange(len(data)), source.randint(1, 16)
        kind = source.choice(["set", "left out", "moved"])
        if kind == "set":
            copy[place] = source.choice([0, 1, 127, 128, 254, 255])
        elif kind == "left out":
            del copy[place : place + size]
        else:
            begin = source.randrange(len(data))
            copy[place : place + size] = copy[begin : begin + size]
        damaged.append((f"{kind} at {place}", bytes(copy)))
    return damaged


def rewritten_cases(tools, folder):
    """The IR of a small model after rewrites, as text and as bytecode with a sum in its header, which notices every change."""
    (folder / "small.mlir").write_text(small_model.text())
    forms = {"int4": ["--quantize=int4", "--group=32", "--outliers=1%"], "nm": ["--prune=2:4", "--force", "--weights=bf16"],
             "int8": ["--quantize=int8"]}
    for form, flags in forms.items():
        for ending in "mlir", "mlirbc":
            ir = folder / f"{form}.{ending}"
            suite.run_tool([tools / "hone", "compile", folder / "small.mlir", "--start-from=rewrite", *flags, "--quiet",
                            "--stop-after=rewrite", "-o", ir])
            data, name = ir.read_bytes(), f"rewritten {ir.name}"
            code = data[: data.find(b"{-#")] if ending == "mlir" else data
            commands = [["hone", "compile", ir.name, "--start-from=lower", "-o", "out", "--quiet"], ["hone", "inspect", ir.name]]
            yield f"{name} whole", {ir.name: data}, commands[0], False
            for command in commands:
                for what, damaged in cut(data, CUTS, name) + changed(code, FLIPS, name) + flip(data, FLIPS, name, len(code)):
                    # The name of the producer alone is not summed: who changes it has a file of another producer.
                    is_noticed = ending == "mlirbc" and damaged[:64] == data[:64] and damaged != data
                    yield f"{name} {command[1]} {what}", {ir.name: damaged}, command, is_noticed


def foreign_cases(tools, folder):
    """What is no model of ours: other dialects, and bytecode of another version or of nothing."""
    modules = {"empty": "module {}", "nothing": "", "data": "data " * 100,
               "other": "func.func @main(%x: memref<4xf32>) { return }", "unknown": '"their.op"() : () -> ()',
               "device": "gpu.module @k { gpu.func @f() kernel { gpu.return } }",
               "llvm": "llvm.func @main() { llvm.return }", "spirv": "spirv.module Logical GLSL450 {}",
               "private": "func.func private @main(tensor<f32>) -> tensor<f32>"}
    files = {f"{name}.mlir": text.encode() for name, text in modules.items()}
    (folder / "small.mlir").write_text(small_model.text())
    suite.run_tool([tools / "hone", "compile", folder / "small.mlir", "--start-from=rewrite", "--stop-after=rewrite", "--quiet",
                    "-o", folder / "small.mlirbc"])
    whole = (folder / "small.mlirbc").read_bytes()
    files |= {"version.mlirbc": whole[:4] + b"\xff" + whole[5:], "magic.mlirbc": whole[:8], "text.mlirbc": b"module {",
              "none.mlirbc": b"", "code.mlir": whole}
    for name, data in files.items():
        yield f"foreign compile {name}", {name: data}, ["hone", "compile", name, "-o", "out"], True
        yield f"foreign late compile {name}", {name: data}, ["hone", "compile", name, "--start-from=tensor", "-o", "out"], True
        yield f"foreign calibrate {name}", {name: data}, ["hone", "calibrate", name, "--tokens", name, "-o", "out"], True
        yield f"foreign inspect {name}", {name: data}, ["hone", "inspect", name], False
        yield f"foreign export {name}", {name: data}, ["hone", "export", name, "-o", "out"], False


def statistics_cases(path, tools, folder):
    np.save(folder / "tokens.npy", np.arange(64) % 251)
    statistics = folder / "s.safetensors"
    suite.run_tool([tools / "hone", "calibrate", path, "--tokens", folder / "tokens.npy", "--window", 16, "-o", statistics, "--quiet"])
    data, model = statistics.read_bytes(), path.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    command = ["hone", "compile", "m.onnx", "--quantize=int4", "--calibration=s.safetensors", "--stop-after=rewrite", "-o", "out", "--quiet"]
    for what, damaged in cut(data, CUTS, "statistics"):
        yield f"statistics {what}", {"m.onnx": model, "s.safetensors": damaged}, command, True
    for what, damaged in flip(data, FLIPS * 2, "statistics", header) + flip(data, FLIPS, "statistics data") + changed(data, FLIPS, "statistics"):
        yield f"statistics {what}", {"m.onnx": model, "s.safetensors": damaged}, command, False


def artefact_cases(path, tools, folder):
    artefact = folder / "m.hone"
    subprocess.run([tools / "hone", "compile", path, "-o", artefact, "--tokenizer", TOKENIZER], check=True)
    with np.load(path.with_suffix(".npz")) as arrays:
        np.savez(folder / "in.npz", **{key.split("/", 2)[2]: arrays[key] for key in arrays if key.startswith("case0/in/")})
    inputs = (folder / "in.npz").read_bytes()
    call = ["hone-run", "run", "m.hone", "--inputs", "in.npz"]
    for file in sorted(artefact.iterdir()):
        data = file.read_bytes()
        for what, damaged in [("missing", None)] + cut(data, CUTS, file.name):
            lost = damaged is None or damaged.rstrip() != data.rstrip()  # a line's end at the end is nothing
            yield f"{file.name} {what}", {"in.npz": inputs, f"m.hone/{file.name}": damaged}, call, lost, artefact
    program = (artefact / "program.so").read_bytes()
    for what, damaged in flip(program, FLIPS, "program"):
        yield f"program {what}", {"in.npz": inputs, "m.hone/program.so": damaged}, call, True, artefact
    weights = (artefact / "weights.safetensors").read_bytes()
    for what, damaged in flip(weights, FLIPS * 2, "weights", 3000):
        yield f"weights {what}", {"in.npz": inputs, "m.hone/weights.safetensors": damaged}, call, False, artefact
    manifest = (artefact / "manifest.json").read_bytes()
    for what, damaged in flip(manifest, FLIPS * 2, "manifest"):
        yield f"manifest {what}", {"in.npz": inputs, "m.hone/manifest.json": damaged}, call, False, artefact
    changes = list(changed_values(json.loads(manifest)))
    for what, document in seeded("manifest").sample(changes, min(300, len(changes))):
        yield f"manifest {what}", {"in.npz": inputs, "m.hone/manifest.json": json.dumps(document).encode()}, call, False, artefact
    for what, damaged in cut(inputs, CUTS, "npz"):
        yield f"npz {what}", {"in.npz": damaged}, call, True, artefact
    for what, damaged in flip(inputs, FLIPS * 2, "npz"):
        yield f"npz {what}", {"in.npz": damaged}, call, False, artefact


def tokenizer_cases():
    data = TOKENIZER.read_bytes()
    for what, damaged in cut(data, CUTS, "tokenizer") + flip(data, FLIPS, "tokenizer", 4000):
        yield f"tokenizer {what}", {"t.json": damaged}, ["hone-tokenize", "t.json"], what.startswith("cut")


def main():
    options = suite.parser(__doc__).parse_args()
    tools = options.build.resolve() / "bin"
    bench = Bench(tools)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models = sorted((suite.ROOT / "test" / "models").glob("*/*.onnx"))
        small = suite.ROOT / "test" / "models" / "gpt2.optimum" / "model.onnx"
        cases = [case for path in models for case in model_cases(path, bench)]
        cases += [*ir_cases(small, tools, folder), *artefact_cases(small, tools, folder), *tokenizer_cases()]
        cases += [*rewritten_cases(tools, folder), *foreign_cases(tools, folder), *statistics_cases(small, tools, folder)]
        named = [(case[0], case) for case in cases if options.only in case[0]]
        passed = failed = 0
        for _, reason in suite.run_cases(named, lambda case: bench.check(*case), options.jobs):
            passed, failed = passed + (reason is None), failed + (reason is not None)
            if reason:
                print(reason, flush=True)
    return suite.finish(passed, failed)


sys.exit(main())
