# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for CUDA, on a machine that needs no GPU: each compiles for two chips, no kernel spills registers, and on the emulated
driver (test/emulation) the answers are onnxruntime's, also through @forward (sessions.py), whose steps wait for nothing but their end.

The models are those of test/models, and of the shared folder's zoo where it exists. What LLVM makes for the lower chip is assembled for
both: the text is the same but for the name of the chip. A model whose stored cases execute more than BUDGET instructions of warps is
compiled and assembled alone, counts as skipped, and is named with what it executed.
"""

import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import emulation
import onnx_reference
import sessions
import suite

# A core emulates 15 million a second.
BUDGET = 400_000_000
CHIPS = ["sm_80", "sm_90"]
SPILLS = re.compile(r"([1-9]\d*) bytes spill")


def find_ptxas():
    """The assembler of the environment that runs this."""
    found = sorted(pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/nvidia/cu13/bin/ptxas"))
    if not found:
        raise SystemExit("expected nvidia-cuda-nvcc in the environment; './dev deps' makes it")
    return found[0]


def spilling(messages):
    """Kernels whose registers ptxas keeps in memory, by what `ptxas -v` says."""
    kernel, names = "", []
    for line in messages.splitlines():
        if entry := re.search(r"entry function '([^']+)'", line):
            kernel = entry[1]
        if SPILLS.search(line):
            names.append(kernel)
    return names


def assemble(ptxas, text, chip, folder):
    result = subprocess.run([ptxas, "-v", f"-arch={chip}", "-o", folder / "kernels.cubin", text],
                            capture_output=True, text=True)
    if result.returncode:
        raise suite.Failure(f"{chip}: {suite.one_line(result.stderr)}")
    if names := spilling(result.stderr):
        raise suite.Failure(f"{chip}: registers spill in {', '.join(names)}")


def waits_of(text):
    """How many times the host waits for a tensor of the device in a step of decoding, by the program with its buffers."""
    functions = re.split(r"^  func\.func ", text, flags=re.MULTILINE)
    return sum(function.count("hrt.fetch") for function in functions if re.match(r"(private )?@forward\b", function))


def check(path, build, ptxas):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        artefact = folder / "model.hone"
        suite.run_tool([build / "bin" / "hone", "compile", path, "--target=cuda", f"--chip={CHIPS[0]}", "--kv-cache=model", "-o", artefact,
                        f"--save-ir={folder}", "--quiet"])
        device = json.loads((artefact / "manifest.json").read_text())["device"]
        text = folder / "device.ptx"
        kernels = re.findall(r"\.visible \.entry (\w+)\(", text.read_text())
        if sorted(kernels) != sorted(device["kernels"]):
            raise suite.Failure(f"the manifest names {len(device['kernels'])} kernels, and the code has {len(kernels)}")
        for chip in CHIPS:
            assemble(ptxas, text, chip, folder)
        waits = waits_of((folder / "5-buffer.mlir").read_text())
        if waits:
            raise suite.Failure(f"the host waits {waits} times within a step")
        tolerance, exact = emulation.tolerance_of(path), onnx_reference.without_rounding(path, folder)
        emulation.run_tool([build / "bin" / "hone-run", "run", artefact, "--cases", suite.cases_of(exact, folder),
                            "--rtol", tolerance, "--atol", tolerance], folder, BUDGET)
        sessions.check(exact, artefact, build / "lib" / "libhone_rt.so", tolerance)


def main():
    options = suite.parser(__doc__).parse_args()
    ptxas = find_ptxas()
    # The runtime of this process and of those it starts: the loader knows by its name what is open.
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    beyond = {}

    def check_within(case):
        name, path = case
        try:
            check(path, options.build, ptxas)
        except emulation.Beyond as reason:
            beyond[name] = reason

    passed = failed = 0
    cases = [(name, (name, path)) for name, path in suite.models().items() if options.only in name]
    for name, reason in suite.run_cases(cases, check_within, options.jobs):
        passed, failed = passed + (not reason and name not in beyond), failed + bool(reason)
        if reason or name in beyond:
            print(f"{name}: {reason or f'not run to its end: {beyond[name]}'}", flush=True)
    return suite.finish(passed, failed, len(beyond))


sys.exit(main())
