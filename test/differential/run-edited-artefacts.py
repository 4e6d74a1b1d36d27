# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artefacts that somebody has edited: every tool does its work or says in one sentence what is wrong, and none is ended by a signal
or by a sanitizer.

Sizes and sums in the manifest are always those of the edited files, so that what is looked at lies after them. Code itself is not
edited: whoever can do that needs no fault of ours.
"""

import copy
import functools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

import suite

TIMEOUT_SECONDS = 300
CPU = "x86-64-v3"  # that of every machine with Hone, whatever compiled the artefact
LANGUAGE_MODEL = suite.ROOT / "examples" / "python-lm" / "model.onnx"
TOKENIZER = LANGUAGE_MODEL.with_name("tokenizer.json")
PLAIN_MODEL = suite.ROOT / "test" / "models" / "gpt2.optimum" / "model.onnx"
FORMS = {
    "outliers": ["--quantize=int4", "--group=64", "--outliers=0.5%"],
    "sparse": ["--prune=2:4", "--force", "--weights=bf16", "--kv-cache=int8"],
    "codebook": ["--quantize=int4", "--quantize-method=squeezellm", "--outliers=0.5%", "--kv-cache=int4"],
}
INDICES = """
hone.param @ids : tensor<4xi64> = dense<[3, 1, 2, 0]> : tensor<4xi64>
hone.param @table : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
func.func @main(%x: tensor<4xi64> {onnx.name = "x"}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %ids = hone.get_param @ids : tensor<4xi64>
  %table = hone.get_param @table : tensor<4x8xf32>
  %known = hone.embedding %ids, %table : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %given = hone.embedding %x, %table : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %known, %given : tensor<4x8xf32>, tensor<4x8xf32>
}
"""
REPLACEMENTS = [None, -1, 2**62, -(2**63), 10**30, 1.5, "", "x" * 300, "../x", [], {}, [[]], True]


class Artefact:
    """Files of a folder, and what runs it."""

    def __init__(self, folder, runs):
        self.name, self.runs = folder.stem, runs
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.manifest = json.loads(self.files.pop("manifest.json"))


class Edit:
    """A change of an artefact's files or manifest. One that `must_fail` is found when the artefact is loaded."""

    def __init__(self, name, artefact, files=None, manifest=None, must_fail=None, commands=None, resize=True, place=None):
        self.name, self.artefact, self.must_fail, self.place = f"{artefact.name} {name}", artefact, must_fail, place
        self.files = {**artefact.files, **(files or {})}
        self.manifest = copy.deepcopy(artefact.manifest) if manifest is None else manifest
        self.commands = commands or ["run", "inspect"]
        if resize and files:
            self.fit(files)

    def fit(self, files):
        """The sizes and sums of changed files."""
        for name, data in files.items():
            entry = self.manifest["files"].get(name) if isinstance(self.manifest.get("files"), dict) else None
            if entry and data is not None:
                entry["bytes"] = len(data)
                if "crc32" in entry:
                    entry["crc32"] = zlib.crc32(data)

    def write(self, folder):
        folder.mkdir()
        for name, data in self.files.items():
            if data is not None:
                (folder / name).write_bytes(data)
        if self.manifest != "missing":
            (folder / "manifest.json").write_text(json.dumps(self.manifest))
        if self.place:
            self.place(folder)


def places_of(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from places_of(child, (*path, key))


def changed(document, path, value):
    """A copy with another value at a path, or without it."""
    document = copy.deepcopy(document)
    holder = functools.reduce(lambda inner, key: inner[key], path[:-1], document)
    if value == "left out":
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


def manifest_edits(artefact, count):
    """Values of every kind at every place, `count` of them; entries are what the program relies on."""
    source = np.random.default_rng(1)
    document = artefact.manifest
    cases = [(path, value) for path in places_of(document) for value in ["left out", *REPLACEMENTS]]
    for number in sorted(source.choice(len(cases), min(count, len(cases)), replace=False)):
        path, value = cases[number]
        edited = changed(document, path, value)
        old = functools.reduce(lambda inner, key: inner[key], path, document)
        relied = path[0] in ("entries", "states", "ranks", "target") and old != value
        relied &= not (path[-1] == "append_axis" and value in (None, "left out") and old is None)
        name = f"manifest {'.'.join(map(str, path))} {json.dumps(value)[:24]}"
        yield Edit(name, artefact, manifest=edited, must_fail=relied or None)


def tensor_contradictions(artefact, place, what):
    """Of the tensors at `place` of the manifest."""
    tensors = functools.reduce(lambda inner, key: inner[key], place, artefact.manifest)
    for index, tensor in enumerate(tensors[:3]):
        edits = [("dtype", "u8"), ("dtype", "f64"), ("dtype", "c128"), ("shape", []), ("shape", tensor["shape"][:-1] + [1]),
                 ("shape", tensor["shape"][:-1] + [2**40]), ("shape", ["z"] * len(tensor["shape"])), ("name", "z")]
        if place[-1] == "slots":
            edits += [("append_axis", 0), ("layout", "value_blocks"), ("bits", 4), ("layout", "key_blocks"), ("bits", 8)]
        for member, value in edits:
            if tensor.get(member) != value:
                yield Edit(f"{what} {index} {member} {value}", artefact, must_fail=True,
                           manifest=changed(artefact.manifest, (*place, index, member), value))
    if tensors:
        yield Edit(f"no {what}", artefact, must_fail=True, manifest=changed(artefact.manifest, place, []))


def contradictions(artefact):
    """What is well formed and not what the program was compiled for."""
    for number, state in enumerate(artefact.manifest.get("states", [])):
        yield from tensor_contradictions(artefact, ("states", number, "slots"), f"state {state['name']}")
    for number, entry in enumerate(artefact.manifest["entries"]):
        for role in "inputs", "outputs":
            yield from tensor_contradictions(artefact, ("entries", number, role), f"{role} of {entry['name']}")
        if "state" in entry:
            for value in "left out", "other":
                yield Edit(f"state of {entry['name']} {value}", artefact, must_fail=True,
                           manifest=changed(artefact.manifest, ("entries", number, "state"), value))
        yield Edit(f"limits of {entry['name']}", artefact, must_fail=True, manifest=changed(
            artefact.manifest, ("entries", number, "limits"), [{"sizes": [], "held": True, "most": 2**62, "table": "t"}]))
        yield Edit(f"without {entry['name']}", artefact, manifest=changed(artefact.manifest, ("entries", number), "left out"),
                   must_fail=True)
    yield Edit("ranks", artefact, manifest={**artefact.manifest, "ranks": 2}, must_fail=True)
    yield Edit("target", artefact, manifest={**artefact.manifest, "target": "cuda"}, must_fail=True)
    yield Edit("no features", artefact, manifest=changed(artefact.manifest, ("cpu", "features"), []), must_fail=True)
    yield Edit("older version", artefact, manifest={**artefact.manifest, "version": 1}, must_fail=True, commands=["run", "inspect"])
    yield Edit("no sum", artefact, manifest=changed(artefact.manifest, ("files", "program.so", "crc32"), "left out"), must_fail=True)


def split(data):
    """The header and the tensor data of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(header, data):
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return struct.pack("<Q", len(text)) + text + data


def with_tensor(weights, name, change):
    """A weights file in which `change` has been at the bytes of a tensor."""
    header, data = split(weights)
    begin, end = header[name]["data_offsets"]
    return join(header, data[:begin] + change(data[begin:end]) + data[end:])


def put(dtype, index, value):
    def change(content):
        elements = np.frombuffer(content, dtype).copy()
        elements[index] = value
        return elements.tobytes()

    return change


def address_edits(artefact):
    """Elements that kernels and unpacking compute addresses from."""
    weights = artefact.files["weights.safetensors"]
    header, _ = split(weights)
    starts = [name for name in header if name.endswith(".starts")]
    for name in [starts[0], starts[-1]] if starts else []:
        columns = name.replace(".starts", ".columns")
        count = header[name]["shape"][0]
        edits = [(name, put("<i4", 0, 1)), (name, put("<i4", 0, -1)), (name, put("<i4", 1, 2**31 - 1)), (name, put("<i4", 1, -(2**31))),
                 (name, put("<i4", count - 1, 2**30)), (name, put("<i4", count - 1, 0)), (name, put("<i4", slice(None), -5)),
                 (columns, put("<u2", 0, 0xFFFF)), (columns, put("<u2", -1, 0xFFFF)), (columns, put("<u2", slice(None), 0xFFFF))]
        for number, (tensor, change) in enumerate(edits):
            yield Edit(f"{tensor} {number}", artefact, {"weights.safetensors": with_tensor(weights, tensor, change)}, must_fail=tensor,
                       commands=["run", "masks"])


def known_edits(artefact):
    """Integers that the compiler knew."""
    weights = artefact.files["weights.safetensors"]
    for value in 1, 4, -1, 2**62:
        yield Edit(f"ids {value}", artefact, {"weights.safetensors": with_tensor(weights, "ids", put("<i8", 0, value))},
                   must_fail="ids", commands=["run"])


def flipped(data, places):
    copied = bytearray(data)
    for place in places:
        copied[place // 8] ^= 1 << place % 8
    return bytes(copied)


def weight_edits(artefact, count):
    """Headers that are others, and flipped bits anywhere."""
    name = "weights.safetensors"
    weights = artefact.files[name]
    header, data = split(weights)
    source = np.random.default_rng(2)
    tensors = [key for key in header if not key.startswith("__")]
    for end in (0, 7, 8, 64, len(weights) - len(data), len(weights) - 64, len(weights) - 1):
        yield Edit(f"weights cut at {end}", artefact, {name: weights[:end]}, must_fail=True, commands=["run", "inspect", "masks"])
    yield Edit("weights extended", artefact, {name: weights + bytes(64)}, must_fail=True)
    yield Edit("no weights", artefact, {name: join({}, b"")}, must_fail=True, commands=["run", "inspect", "masks"])
    yield Edit("4 bytes", artefact, {name: join({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))},
               must_fail=True)
    for number in sorted(source.choice(len(tensors), min(4, len(tensors)), replace=False)):
        tensor = tensors[number]
        changes = {"dtype": "U8", "shape": header[tensor]["shape"][::-1] + [1], "data_offsets": [0, 4]}
        for member, value in changes.items():
            edited = {**header, tensor: {**header[tensor], member: value}}
            yield Edit(f"{tensor} {member}", artefact, {name: join(edited, data)}, must_fail=True)
        edited = {("other" if key == tensor else key): value for key, value in header.items()}
        yield Edit(f"{tensor} renamed", artefact, {name: join(edited, data)}, must_fail=True)
    same = [pair for pair in zip(tensors, tensors[1:]) if header[pair[0]]["shape"] == header[pair[1]]["shape"] and
            header[pair[0]]["dtype"] == header[pair[1]]["dtype"]]
    for first, second in same[:1]:
        yield Edit(f"{first} and {second} swapped", artefact, must_fail=True,
                   files={name: join({**header, first: header[second], second: header[first]}, data)})
    head = len(weights) - len(data)
    for number in range(count):
        places = source.integers(head * 8, size=2)
        yield Edit(f"header flipped {number}", artefact, {name: flipped(weights, places)}, commands=["run", "inspect", "masks"][: 2 + number % 2])
        places = head * 8 + source.integers(len(data) * 8, size=8)
        yield Edit(f"data flipped {number}", artefact, {name: flipped(weights, places)}, commands=["run", "masks"][: 1 + number % 2])


def type_edits(artefact):
    """Types in the metadata, which `hone inspect --masks` reads weights by."""
    name = "weights.safetensors"
    header, data = split(artefact.files[name])
    metadata = header["__metadata__"]
    key = next(key for key, text in metadata.items() if "dense_sparse" in text)
    shape = metadata[key].split("tensor<")[1].split("xf32")[0]
    for number, text in enumerate(["", "i1", "tensor<*xf32>", "tensor<?x4xf32>", "tensor<4611686018427387904x4xf32>",
                                   metadata[key].replace(shape, "4x4"), metadata[key].replace(shape, f"{2**62}x{2**62}"),
                                   metadata[key].replace(shape, f"{2**63 - 1}x1"), metadata[key].replace(shape, "0x0"),
                                   metadata[key].replace(shape, f"{2**60}x0"), metadata[key].replace("outliers = ", "outliers = 1"),
                                   metadata[key].replace(shape, "x".join(reversed(shape.split("x")))),
                                   "tensor<4x4xf32, 1 : i32>", "tensor<4x4xf32, #hrt.key_blocks>",
                                   "tensor<64x64xf32, #hone.nm<2:4, of = f32>>", "tensor<8x8xi64>", "tensor<4x" * 200 + "f32>"]):
        edited = {**header, "__metadata__": {**metadata, key: text}}
        yield Edit(f"type {number}", artefact, {name: join(edited, data)}, commands=["masks"])


def link(name, target):
    def place(folder):
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(target or folder.parent / "elsewhere")

    return place


def folder_edits(artefact, other):
    """Files that are missing, others, or something else."""
    program, manifest = artefact.files["program.so"], artefact.manifest
    for name in artefact.files:
        yield Edit(f"without {name}", artefact, {name: None}, must_fail=True)
        yield Edit(f"{name} is a link", artefact, must_fail=True, place=link(name, None), commands=["run"])
        yield Edit(f"{name} is a link to a device", artefact, must_fail=True, place=link(name, "/dev/null"), commands=["run"])
        yield Edit(f"{name} is a folder", artefact, {name: None}, must_fail=True, commands=["run"],
                   place=lambda folder, name=name: (folder / name).mkdir())
        yield Edit(f"{name} is empty", artefact, {name: b""}, must_fail=True, commands=["run"])
    yield Edit("no manifest", artefact, manifest="missing", must_fail=True)
    yield Edit("program of another artefact", artefact, {"program.so": other.files["program.so"]}, must_fail=True)
    yield Edit("weights of another artefact", artefact, {"weights.safetensors": other.files["weights.safetensors"]}, must_fail=True)
    yield Edit("manifest of another artefact", artefact, must_fail=True, resize=False,
               manifest={**copy.deepcopy(other.manifest), "files": manifest["files"]})
    for end in (64, len(program) // 2, len(program) - 1):
        yield Edit(f"program cut at {end}", artefact, {"program.so": program[:end]}, must_fail=True, resize=False)
    yield Edit("program is text", artefact, {"program.so": b"no library " * 100}, must_fail=True)
    for name in "/etc/passwd", "../elsewhere", "..", ".", "", "a/b", "manifest.json", "program.so", "\0":
        yield Edit(f"tokenizer {name!r}", artefact, manifest={**manifest, "tokenizer": name}, must_fail=True)
        files = {**manifest["files"], name: {"bytes": 1}}
        yield Edit(f"file {name!r}", artefact, manifest={**manifest, "files": files}, must_fail=True)


def tokenizer_edits(artefact):
    tokenizer = json.loads(artefact.files["tokenizer.json"])
    vocabulary = tokenizer["model"]["vocab"]
    shifted = copy.deepcopy(tokenizer)
    shifted["model"]["vocab"] = {token: number + 100_000 for token, number in vocabulary.items()}
    few = copy.deepcopy(tokenizer)
    few["model"]["vocab"] = dict(list(vocabulary.items())[:3])
    for what, document in {"shifted": shifted, "few": few, "empty": {}, "list": []}.items():
        yield Edit(f"tokenizer {what}", artefact, {"tokenizer.json": json.dumps(document).encode()}, commands=["run"])
    for generation in {"eos": [-1, 2**62], "bos": 2**62}, {"eos": [], "bos": -5}:
        yield Edit(f"generation {generation}", artefact, manifest={**artefact.manifest, "generation": generation})
    yield Edit("gathered", artefact, manifest={**artefact.manifest, "gathered": ["nothing", ""]}, commands=["bench"])


class Bench:
    """Runs the tools over an edited artefact in a folder of its own."""

    def __init__(self, tools):
        self.tools = tools

    def check(self, edit):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "m.hone"
            edit.write(folder)
            for command in edit.commands:
                self.run(edit, command, folder)

    def run(self, edit, command, folder):
        if command == "run":
            words = ["hone-run", "run", folder, *edit.artefact.runs]
        elif command == "masks":
            words = ["hone", "inspect", folder, "--masks"]
        elif command == "bench":
            words = ["hone-run", "bench", folder, "--prompt-length=4", "--new-tokens=2", "--repeat=1", "--threads=1"]
        else:
            words = ["hone-run", "inspect", folder]
        try:
            result = subprocess.run([str(self.tools / words[0]), *map(str, words[1:])], capture_output=True, stdin=subprocess.DEVNULL,
                                    timeout=TIMEOUT_SECONDS, env={**os.environ, "OMP_NUM_THREADS": "1"})
        except subprocess.TimeoutExpired:
            raise suite.Failure(f"{command} did not end in {TIMEOUT_SECONDS} s") from None
        self.judge(edit, command, result.returncode, result.stderr.decode(errors="replace"))

    @staticmethod
    def judge(edit, command, code, text):
        lines = [line for line in text.splitlines() if line.startswith("hone") and ": note: " not in line]
        if code not in (0, 1) or "Sanitizer" in text or "runtime error:" in text:
            raise suite.Failure(f"{command} ended with {code}: {suite.one_line(text)}")
        if code == 1 and len(lines) != 1:
            raise suite.Failure(f"{command} failed with {len(lines)} sentences: {text[:600]}")
        if code == 0 and edit.must_fail and command in ("run", "bench"):
            raise suite.Failure(f"{command} did not notice")
        if code == 0 and isinstance(edit.must_fail, str) and command == "masks":
            raise suite.Failure("masks did not notice")
        if isinstance(edit.must_fail, str) and edit.must_fail not in text:
            raise suite.Failure(f"{command} does not name {edit.must_fail}: {suite.one_line(text)}")


def compile_model(tools, model, folder, name, flags):
    target = folder / f"{name}.hone"
    suite.run_tool([tools / "hone", "compile", model, "-o", target, "--quiet", f"--mcpu={CPU}", *flags])
    return target


def make_artefacts(tools, folder):
    prompt = ["--prompt", "def f(x):", "--max-new-tokens=3", "--threads=1"]
    artefacts = {}
    for name, flags in FORMS.items():
        made = compile_model(tools, LANGUAGE_MODEL, folder, name, ["--tokenizer", TOKENIZER, *flags])
        artefacts[name] = Artefact(made, prompt)
    with np.load(PLAIN_MODEL.with_suffix(".npz")) as arrays:
        np.savez(folder / "in.npz", **{key.split("/", 2)[2]: arrays[key] for key in arrays if key.startswith("case0/in/")})
    plain = compile_model(tools, PLAIN_MODEL, folder, "plain", [])
    artefacts["plain"] = Artefact(plain, ["--inputs", folder / "in.npz", "--threads=1"])
    (folder / "indices.mlir").write_text(INDICES)
    np.savez(folder / "x.npz", x=np.arange(4))
    indices = compile_model(tools, folder / "indices.mlir", folder, "indices", ["--start-from=rewrite"])
    artefacts["indices"] = Artefact(indices, ["--inputs", folder / "x.npz"])
    return artefacts


def edits_of(artefacts):
    outliers, sparse, codebook, plain = (artefacts[name] for name in (*FORMS, "plain"))
    for artefact in artefacts.values():
        yield Edit("as it is", artefact, commands=["run", "inspect", "masks"])
        yield from manifest_edits(artefact, 30)
        yield from address_edits(artefact)
    yield from known_edits(artefacts["indices"])
    yield Edit("as it is, measured", outliers, commands=["bench"])
    for artefact in outliers, plain:
        yield from contradictions(artefact)
    yield from contradictions_of_state(sparse)
    yield from weight_edits(outliers, 12)
    yield from weight_edits(sparse, 6)
    yield from weight_edits(codebook, 6)
    yield from type_edits(outliers)
    yield from folder_edits(outliers, codebook)
    yield from tokenizer_edits(outliers)


def contradictions_of_state(artefact):
    yield from (edit for edit in contradictions(artefact) if "state" in edit.name)


def main():
    options = suite.parser(__doc__).parse_args()
    tools = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as name:
        artefacts = make_artefacts(tools, pathlib.Path(name))
        bench = Bench(tools)
        cases = [(edit.name, edit) for edit in edits_of(artefacts) if options.only in edit.name]
        return suite.run_all(cases, bench.check, options.jobs)


sys.exit(main())
