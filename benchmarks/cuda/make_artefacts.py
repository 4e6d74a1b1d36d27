# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_artefacts.py --build BUILD --output FOLDER: artefacts for GPUs with what they shall answer, for a machine without Hone.

Each folder NAME of the output has `model.hone` and `check.json`, which check_artefacts.py reads: for models of test/models the
calls of `cases.npz` with onnxruntime's answers, for the language model what the CPU writes, on one GPU and on RANKS of them. Beside them
lies `runtime` with hone-run, libhone_cuda and the libraries that they need beside the C library, and libhone_mpi, which needs the MPI of
the machine.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test" / "differential"))
import suite  # noqa: E402

CHIP = "sm_80"         # newer ones compile its PTX
HOST = "x86-64-v3"     # what every machine with such a GPU runs
TOLERANCE = 1e-3       # f32 in another order of summation, over a few layers
NEW_TOKENS = 64
RANKS = 2
PROMPTS = ["def main(", "import os\n\n\nclass "]
C_LIBRARY = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|pthread|rt))[.-]")


def compile_model(build, model, artefact, *options):
    suite.run_tool([build / "bin" / "hone", "compile", model, f"--mcpu={HOST}", "-o", artefact, "--quiet", *options])


def add_model(build, name, path, folder):
    folder.mkdir(parents=True)
    compile_model(build, path, folder / "model.hone", "--target=cuda", f"--chip={CHIP}")
    cases = suite.cases_of(path, folder)
    if cases.parent != folder:
        shutil.copy(cases, folder / "cases.npz")
    commands = [["run", "model.hone", "--cases", "cases.npz", "--rtol", str(TOLERANCE), "--atol", str(TOLERANCE)]]
    (folder / "check.json").write_text(json.dumps({"name": name, "commands": commands}))


def add_language_models(build, output):
    example = ROOT / "examples" / "python-lm"
    tokenizer = f"--tokenizer={example / 'tokenizer.json'}"
    compile_model(build, example / "model.onnx", output / "cpu.hone", tokenizer)
    commands, texts = [], []
    for prompt in PROMPTS:
        command = ["run", "model.hone", "--prompt", prompt, "--max-new-tokens", str(NEW_TOKENS)]
        commands.append(command)
        texts.append(suite.run_tool([build / "bin" / "hone-run", "run", output / "cpu.hone", *command[2:]]))
    shutil.rmtree(output / "cpu.hone")
    for name, ranks in ("python-lm", 1), ("python-lm on several GPUs", RANKS):
        folder = output / name.replace(" ", "-")
        folder.mkdir()
        compile_model(build, example / "model.onnx", folder / "model.hone", "--target=cuda", f"--chip={CHIP}", tokenizer,
                      f"--tensor-parallel={ranks}")
        check = {"name": name, "ranks": ranks, "commands": commands, "texts": texts}
        (folder / "check.json").write_text(json.dumps(check))


def add_runtime(build, folder):
    folder.mkdir(parents=True)
    for file in build / "bin" / "hone-run", build / "lib" / "libhone_cuda.so":
        shutil.copy(file, folder)
        listing = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"=> (/\S+)", listing):
            if not C_LIBRARY.match(pathlib.Path(library).name):
                shutil.copy(library, folder)
    for file in (build / "lib").glob("libhone_mpi.so"): # MPI itself is more than libraries
        shutil.copy(file, folder)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True)
    options.add_argument("--output", type=pathlib.Path, required=True, help="a folder, which is made anew")
    options = options.parse_args()
    shutil.rmtree(options.output, ignore_errors=True)
    add_runtime(options.build, options.output / "runtime")
    for name, path in suite.models(own=True).items():
        add_model(options.build, name, path, options.output / name.replace("/", "-"))
    add_language_models(options.build, options.output)


main()
