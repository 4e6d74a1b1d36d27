# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two processes with a GPU each, on the emulated driver and the emulated NCCL (test/emulation): models that are split over them give what
is stored of onnxruntime and write what the CPU writes, and what goes wrong is one sentence.
"""

import contextlib
import functools
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

import emulation
import onnx_reference
import suite
from parallel import RANKS, compile_model, expect_sentence, run, run_suite, start

LM = suite.ROOT / "examples" / "python-lm" / "model.onnx"
CUDA = ["--target=cuda", "--chip=sm_80"]
# Weights whose parts two ranks multiply as one would, by activations of as many bits on the CPU as on GPUs (run-cuda-forms.py).
FORMS = {"f32": [], "bf16": ["--weights=bf16", "--kv-cache=bf16"],
         **{f"int{bits}": [f"--pass-pipeline=hone-quantize-weights{{bits={bits} group=64 activations=0}}"] for bits in (8, 4)}}
NEW_TOKENS = 12


def variables_with(build, devices=RANKS, library=None):
    """Those of processes that see so many emulated GPUs, and the NCCL that is in a folder."""
    emulated = (build / "test" / "emulation").resolve()
    folders = [emulated / "lib", library or emulated / "nccl" / "lib"]
    before = [folder for folder in [os.environ.get("LD_LIBRARY_PATH")] if folder]
    return {"LD_LIBRARY_PATH": os.pathsep.join([*map(str, folders), *before]), "HONE_EMULATED_DEVICES": str(devices)}


def check_model(path, build):
    """Tensors in and out, whole on each rank, against what is stored of onnxruntime."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = pathlib.Path(name), build / "bin"
        artefact, tolerance = folder / "m.hone", emulation.tolerance_of(path)
        compile_model(tools, path, artefact, CUDA)
        printed = run(tools, ["run", artefact, "--cases", suite.cases_of(onnx_reference.without_rounding(path, folder), folder), "--rtol", tolerance, "--atol", tolerance],
                      variables=variables_with(build))
        if printed.count("as expected") != 1:
            raise suite.Failure(f"expected one rank to print, but got: {printed!r}")


def generate(build, folder, artefact, ranks=RANKS, flags=()):
    """What it writes after the prompt in the folder, and on GPUs the counters of each rank."""
    reports = {rank: folder / f"report{rank}.json" for rank in range(ranks or 1)}
    of_ranks = {rank: {"HONE_EMULATED_REPORT": str(report)} for rank, report in reports.items()}
    variables = {**variables_with(build), **(of_ranks[0] if not ranks else {})}
    text = run(build / "bin", ["run", artefact, "--tokens", folder / "prompt.npy", "--ignore-end", "--prefill-chunk", 8,
                               "--max-new-tokens", NEW_TOKENS, *flags], ranks, variables, of_ranks)
    return text, [json.loads(report.read_text()) for report in reports.values() if report.exists()]


def write_prompt(folder):
    np.save(folder / "prompt.npy", np.random.default_rng(3).integers(3, 2000, 13, dtype=np.int32))


def check_generation(flags, build):
    """A prompt in pieces, then token by token with state, greedily: on two GPUs, on one, and on two ranks of the CPU. Steps are graphs,
    with what ranks do together in them."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = pathlib.Path(name), build / "bin"
        write_prompt(folder)
        texts = {}
        for what, target, ranks in ("two GPUs", CUDA, RANKS), ("one GPU", CUDA, 1), ("two CPUs", [], RANKS):
            artefact = folder / f"{what}.hone"
            compile_model(tools, LM, artefact, [*target, *flags], ranks)
            texts[what], reports = generate(build, folder, artefact, ranks if ranks > 1 else 0)
            if what == "two GPUs":
                graphs = [report["graph_launches"] for report in reports]
                if len(graphs) != RANKS or min(graphs) < NEW_TOKENS - 3 or max(graphs) != min(graphs):
                    raise suite.Failure(f"expected a graph for nearly each of {NEW_TOKENS} tokens on each rank, but got {graphs}")
    for what, text in texts.items():
        if len(text.split()) != NEW_TOKENS or text != texts["one GPU"]:
            raise suite.Failure(f"{what} write {text!r}, one writes {texts['one GPU']!r}")


def check_profile(build):
    """What ranks do together has its time in a profile."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = pathlib.Path(name), build / "bin"
        compile_model(tools, LM, folder / "m.hone", CUDA)
        run(tools, ["bench", folder / "m.hone", "--prompt-length", 4, "--new-tokens", 1, "--repeat", 1, "--profile",
                    folder / "profile.json"], variables=variables_with(build))
        text = (folder / "profile.json").read_text()
        for kernel in "ncclAllReduce", "ncclAllGather":
            if kernel not in text:
                raise suite.Failure(f"the profile has no {kernel}")


def check_shown(build):
    """A launcher shows each rank one GPU, of which each is the first that it sees."""
    with generation(build) as (_, command):
        run(build / "bin", command, variables=variables_with(build, devices=1), of_ranks={1: {"HONE_EMULATED_FIRST_DEVICE": "1"}})


@contextlib.contextmanager
def generation(build):
    """A folder, and what hone-run is called with to write some tokens by what is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_prompt(folder)
        compile_model(build / "bin", LM, folder / "m.hone", CUDA)
        yield folder, ["run", folder / "m.hone", "--tokens", folder / "prompt.npy", "--max-new-tokens", 4]


def check_refusals(build):
    """What a machine lacks and what goes wrong on the way: one sentence, exit 1, and nobody waits."""
    with generation(build) as (folder, command):
        tools = build / "bin"
        usual = variables_with(build)
        expect_sentence(start(tools, command, 0, usual), "alone", "m.hone: expected 2 processes, but got 1", 1)
        damaged = folder / "libnccl.so.2" # an NCCL that the machine may have comes after it
        damaged.write_bytes(b"")
        expect_sentence(start(tools, command, variables=variables_with(build, library=folder)), "a damaged library",
                        f"m.hone: cannot connect the GPUs of ranks: NCCL cannot be loaded: {damaged}: file too short", 1)
        expect_sentence(start(tools, command, variables=usual | {"HONE_EMULATED_NCCL_VERSION": "21212"}), "an old library",
                        "m.hone: cannot connect the GPUs of ranks: expected NCCL 2.13.0 or newer, but libnccl.so.2 is 2.12.12", 1)
        expect_sentence(start(tools, command, variables=variables_with(build, devices=1)), "one GPU",
                        "m.hone: expected a GPU for each of the 2 ranks on this machine, but got 1", 1)
        expect_sentence(start(tools, command, variables=variables_with(build, devices=0)), "no GPU",
                        "m.hone: cannot use an NVIDIA GPU: the driver finds none", 1)
        expect_sentence(start(tools, command, variables=usual, of_ranks={1: {"HONE_EMULATED_MEMORY": "1000000"}}), "little memory",
                        "hone-run: rank 1: ", 1)
        expect_sentence(start(tools, command, variables=usual | {"HONE_EMULATED_NCCL_FAIL_AT": "3"}), "an error of NCCL",
                        "cannot add up over the ranks by NCCL: internal error: the failure that HONE_EMULATED_NCCL_FAIL_AT asks for")
        expect_sentence(start(tools, command, variables=usual, of_ranks={1: {"HONE_EMULATED_FAULT_AT": "40"}}), "a fault",
                        "hone-run: rank 1: ")


def check_dead_rank(build):
    """A rank that is killed: mpirun ends the others, and where it does not, they do not wait for it."""
    with generation(build) as (_, command):
        tools = build / "bin"
        killed = {"variables": variables_with(build), "of_ranks": {1: {"HONE_EMULATED_NCCL_KILL_AT": "5"}}}
        if start(tools, command, **killed).returncode == 0:
            raise suite.Failure("expected another exit than 0 where a rank was killed")
        said = "cannot reach the GPUs of the other ranks by NCCL: remote process exited or there was a network error"
        result = start(tools, command, **killed, options=["--enable-recovery"]) # which makes its exit 0 in any case
        if said not in result.stderr:
            raise suite.Failure(f"expected {said!r}, but got {result.stderr!r}")


def cases():
    for name, path in suite.models(own=True).items():
        yield name, functools.partial(check_model, path)
    for name, flags in FORMS.items():
        yield f"generation, {name}", functools.partial(check_generation, flags)
    yield "GPUs shown", check_shown
    yield "profile", check_profile
    yield "refusals", check_refusals
    yield "dead rank", check_dead_rank


sys.exit(run_suite(__doc__, cases()))
