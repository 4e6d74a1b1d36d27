# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_bundle.py --build BUILD --output FOLDER [PART...]: what runs on a GPU, in a folder for a machine without Hone.

    run, *.py      what is called there, and what it calls
    runtime/       hone-run, libhone_cuda, the programs of unit tests and benchmarks, and the libraries that they need other than the C library,
                   with the oldest version of that which they run with; libhone_mpi, which needs the MPI of the machine
    artefacts/     a folder for each model with `model.hone` and `check.json`, which check_artefacts.py reads: for models of test/models and
                   other architectures of the shared zoo the calls of `cases.npz` with onnxruntime's answers, for language models what the CPU writes, on one GPU
                   and on RANKS of them
    shapes/        decoders of the shapes of public models without their weights, which make_weights.py makes where they run

PARTS are `kernels` (with the sampler and the runtime's toy), `texts` of language models, `models` and `bench`; without any, all of them. Bundles of
some parts that are unpacked in one place are one. --only NAME takes models and shapes whose name contains it alone.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(HERE), str(ROOT / "test" / "differential")]
import emulation  # noqa: E402
import make_shapes  # noqa: E402
import onnx_reference  # noqa: E402
import runtime  # noqa: E402
import suite  # noqa: E402

CHIP = "sm_80"         # newer ones compile its PTX
HOST = "x86-64-v3"     # what every machine with such a GPU runs
TOLERANCE = 1e-3       # f32 in another order of summation, over a few layers; some models need more (emulation.py)
BF16 = "--weights=bf16"
BF16_TOLERANCE = 2e-2  # against answers in f32
# Of these the rounding of the weights alone stays within that; of gemma2, gpt2 and opt it does not, so they are compared with a CPU that has the
# same weights, where that is at hand (run-cuda-forms.py).
BF16_MODELS = ["bert.optimum", "llama.dynamo23", "mistral.transformers-ort", "phi3.optimum", "qwen3_moe.optimum", "vit.optimum"]
NEW_TOKENS = 64
RANKS = 2
PROMPTS = ["def main(", "import os\n\n\nclass "]
SCRIPTS = ["run", "bench.py", "check_artefacts.py", "make_weights.py"]
RUNTIME = ["bin/hone-run", "lib/libhone_cuda.so"]
PARTS = {"kernels": [f"test/unit/{name}Tests" for name in ("CudaKernels", "DeviceSampling", "RuntimeCore")],
         "texts": RUNTIME, "models": RUNTIME, "bench": [*RUNTIME, "benchmarks/hone-cuda-benchmarks"]}
DATA = ["test/unit/runtime/toy_device_program.so", "test/unit/runtime/toy_device_kernels.fatbin"]  # of RuntimeCoreTests
C_LIBRARY = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|pthread|rt))[.-]")


class Bundle:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def compile(self, model, artefact, *options):
        suite.run_tool([self.build / "bin" / "hone", "compile", model, f"--mcpu={HOST}", "-o", artefact, "--quiet", *options])

    def compile_for_gpu(self, model, artefact, *options):
        self.compile(model, artefact, "--target=cuda", f"--chip={CHIP}", *options)

    def add_programs(self, parts=PARTS):
        target = self.folder / "runtime"
        target.mkdir(parents=True)
        for file in SCRIPTS:
            shutil.copy(HERE / file, self.folder)
        for file in dict.fromkeys(file for part in parts for file in PARTS[part]):
            shutil.copy(self.build / file, target)
            subprocess.run(["llvm-strip-22", target / pathlib.Path(file).name], check=True)
            for library in libraries_of(self.build / file):
                shutil.copy(library, target)
        for file in [self.build / file for file in DATA] + list((self.build / "lib").glob("libhone_mpi.so")):
            shutil.copy(file, target)
        (target / "glibc").write_text(f"{oldest_glibc(target)}\n")

    def add_model(self, name, path, *options):
        """An artefact with the answers that onnxruntime gives in f32."""
        title = " ".join([name, *options])
        folder, first = (self.folder / "artefacts" / words.replace("/", "-").replace(" ", "") for words in (title, name))
        folder.mkdir(parents=True)
        self.compile_for_gpu(path, folder / "model.hone", *options)
        if folder == first:
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                shutil.copy(suite.cases_of(onnx_reference.without_rounding(path, scratch), scratch), folder / "cases.npz")
        tolerance = str(BF16_TOLERANCE if BF16 in options else max(TOLERANCE, emulation.tolerance_of(path)))
        command = ["run", "model.hone", "--cases", f"../{first.name}/cases.npz", "--rtol", tolerance, "--atol", tolerance]
        write_check(folder, {"name": title, "commands": [command]})

    def add_language_model(self, name, model, tokenizer, all_ranks, *options):
        """Its continuations, and by how much the CPU preferred each token of them to the next best; for so many GPUs each."""
        options = [f"--tokenizer={tokenizer}", *options]
        check = {"commands": [], "tokens": [], "margins": []}
        with tempfile.TemporaryDirectory() as scratch:
            artefact, ids = pathlib.Path(scratch) / "cpu.hone", pathlib.Path(scratch) / "ids.npy"
            self.compile(model, artefact, *options)
            for prompt in PROMPTS:
                command = ["run", "model.hone", "--prompt", prompt, "--max-new-tokens", str(NEW_TOKENS), "--output-tokens"]
                suite.run_tool([self.build / "bin" / "hone-run", "run", artefact, *command[2:], ids])
                tokens = np.load(ids).tolist()
                check["commands"].append([*command, "tokens.npy"])
                check["tokens"].append(tokens)
                check["margins"].append(self.margins(artefact, tokenizer, prompt, tokens))
        for ranks in all_ranks:
            title = name if ranks == 1 else f"{name} on several GPUs"
            folder = self.folder / "artefacts" / title.replace(" ", "-")
            folder.mkdir(parents=True)
            self.compile_for_gpu(model, folder / "model.hone", *options, f"--tensor-parallel={ranks}")
            write_check(folder, {"name": title, "ranks": ranks, **check})

    def margins(self, artefact, tokenizer, prompt, tokens):
        """Logits of the tokens that were chosen less those of the next best."""
        ids = subprocess.run([self.build / "bin" / "hone-tokenize", tokenizer], input=prompt, check=True, capture_output=True, text=True)
        begin = [int(word) for word in ids.stdout.split()]
        module = runtime.Module(self.build / "lib" / "libhone_rt.so", artefact)
        session = runtime.Session(module)
        (name,) = module.names("forward", runtime.INPUT)
        logits = session.forward({name: np.array([begin + tokens[:-1]], np.int64)}, "logits")[0, len(begin) - 1:]
        session.close()
        module.close()
        best = np.sort(logits, axis=-1)
        if logits.argmax(-1).tolist() != tokens:
            raise suite.Failure(f"{artefact.name}: chose other tokens for {prompt!r} one by one than for all at once")
        return [round(float(margin), 6) for margin in best[:, -1] - best[:, -2]]

    def add_shape(self, name):
        """The artefact of a decoder, and instead of its weights the table of their file."""
        folder = self.folder / "shapes" / f"{name}.hone"
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            model = pathlib.Path(scratch) / "model.onnx"
            make_shapes.make_shape(name, model)
            self.compile_for_gpu(model, folder)
        if kernels := [kernel for kernel in json.loads((folder / "manifest.json").read_text())["kernels"] if "sparse" in kernel]:
            raise suite.Failure(f"the decoder {name} calls {', '.join(kernels)}")
        (folder / "shape.json").write_text(json.dumps(dataclasses.asdict(make_shapes.SHAPES[name])))
        weights = folder / "weights.safetensors"
        with open(weights, "rb") as file:
            length = file.read(8)
            header = length + file.read(int.from_bytes(length, "little"))
        (folder / "weights.header").write_bytes(header)
        weights.unlink()


def libraries_of(file):
    listing = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
    if "not found" in listing:
        raise SystemExit(f"make_bundle.py: {file}: {listing.strip()}")
    return [library for library in re.findall(r"=> (/\S+)", listing) if not C_LIBRARY.match(pathlib.Path(library).name)]


def oldest_glibc(folder):
    """The oldest version of the C library that has all that the programs and libraries of a folder ask of it."""
    versions = {int(minor) for file in folder.iterdir() for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", file.read_bytes())}
    return f"2.{max(versions)}"


def write_check(folder, check):
    (folder / "check.json").write_text(json.dumps(check))


def models():
    """Those of test/models, and of the shared zoo those of other architectures: all of it would make the bundle larger."""
    own = suite.models(own=True)
    known = {name.split(".")[0] for name in own}
    return own | {name: path for name, path in suite.models().items() if name.split(".")[0] not in known}


def add_models(bundle, only):
    for name, path in models().items():
        if only in name:
            bundle.add_model(name, path)
            if path.parent.name in BF16_MODELS:
                bundle.add_model(name, path, BF16)


def add_texts(bundle, only):
    example, shared = ROOT / "examples" / "python-lm", suite.shared_models()
    if only in "python-lm":
        bundle.add_language_model("python-lm", example / "model.onnx", example / "tokenizer.json", (1, RANKS))
    if shared and (shared / "lm").is_dir() and only in "trained-lm":
        bundle.add_language_model("trained-lm", shared / "lm" / "target" / "optimum" / "model.onnx", shared / "lm" / "tokenizer.json", (1,), BF16)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True)
    options.add_argument("--output", type=pathlib.Path, required=True, help="a folder, which is made anew")
    options.add_argument("--only", default="")
    options.add_argument("part", nargs="*", metavar="PART")
    options = options.parse_args()
    parts = options.part or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"make_bundle.py: unknown part '{min(unknown)}'; supported: {', '.join(PARTS)}")
    shutil.rmtree(options.output, ignore_errors=True)
    bundle = Bundle(options.build.resolve(), options.output)
    bundle.add_programs(parts)
    if "models" in parts:
        add_models(bundle, options.only)
    if "texts" in parts:
        add_texts(bundle, options.only)
    if "bench" in parts:
        for name in make_shapes.SHAPES:
            if options.only in f"shape-{name}":
                bundle.add_shape(name)


if __name__ == "__main__":
    main()
