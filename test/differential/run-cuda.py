# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for CUDA, on a machine that needs no GPU: each compiles for two chips, no kernel spills registers, and on the emulated
driver (test/emulation) the answers are onnxruntime's, also through @forward (sessions.py).

What LLVM makes for the lower chip is assembled for both: the text is the same but for the name of the chip. The models are those
of test/models; with --zoo those of the shared folder's zoo, which take minutes, are added.
"""

import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import sessions
import suite

# Attention multiplies sixteen bits of mantissa on a device, which alone stays within what other models keep. Products of this file
# round activations to 8 bits, so that a difference in the last place can become one of a 127th of the largest activation.
TOLERANCES = {"llama.genai-int4": 3e-2, "qwen3.genai-int4": 3e-2}
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


def check(path, build, ptxas):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        artefact = folder / "model.hone"
        suite.run_tool([build / "bin" / "hone", "compile", path, "--target=cuda", f"--chip={CHIPS[0]}", "-o", artefact,
                        f"--save-ir={folder}", "--quiet"])
        device = json.loads((artefact / "manifest.json").read_text())["device"]
        text = folder / "device.ptx"
        kernels = re.findall(r"\.visible \.entry (\w+)\(", text.read_text())
        if sorted(kernels) != sorted(device["kernels"]):
            raise suite.Failure(f"the manifest names {len(device['kernels'])} kernels, and the code has {len(kernels)}")
        for chip in CHIPS:
            assemble(ptxas, text, chip, folder)
        tolerance = TOLERANCES.get(path.parent.name, sessions.TOLERANCE)
        suite.run_tool([build / "bin" / "hone-run", "run", artefact, "--cases", suite.cases_of(path, folder),
                        "--rtol", tolerance, "--atol", tolerance])
        sessions.check(path, artefact, build / "lib" / "libhone_rt.so", tolerance)


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--zoo", action="store_true", help="add the models of the shared folder's zoo")
    options = parser.parse_args()
    ptxas = find_ptxas()
    # The runtime of this process and of those it starts: the loader knows by its name what is open.
    ctypes.CDLL(suite.use_emulated_driver(options.build) / "libcuda.so.1")
    cases = [(name, path) for name, path in suite.models(own=not options.zoo).items() if options.only in name]
    return suite.run_all(cases, lambda path: check(path, options.build, ptxas), options.jobs)


sys.exit(main())
