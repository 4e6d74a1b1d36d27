# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""peak_memory.py HONE MODEL.onnx WEIGHTS STATISTICS: compiles the model as it is, and with methods of compression. None may take nine
tenths of the bytes of the file WEIGHTS more memory than the first: what is worked on takes up to two thirds of those of a model
that is so small, and a copy of all weights would be as many bytes again."""

import os
import sys

METHODS = {
    "gptq": ["--quantize=int4", "--calibration"],
    "sparsegpt": ["--prune=2:4", "--force", "--calibration"],
    "sparsegpt, gptq": ["--prune=2:4", "--force", "--quantize=int4", "--calibration"],
    "structured": ["--prune=structured", "--sparsity=25%", "--calibration"],
}
hone, model, weights, statistics = sys.argv[1:]


def peak(options):
    """The most bytes of memory that a compilation has held."""
    options = [f"{option}={statistics}" if option == "--calibration" else option for option in options]
    command = [hone, "compile", model, "-o", "memory.hone", "--quiet", "--report=memory.json", *options]
    process = os.posix_spawn(hone, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    assert status == 0, command
    return usage.ru_maxrss * 1024


size, base = os.path.getsize(weights), peak([])
shares = {name: (peak(options) - base) / size for name, options in METHODS.items()}
print(f"{base} bytes; more, as a share of {size} bytes of weights: " + ", ".join(f"{n} {s:.2f}" for n, s in shares.items()))
assert max(shares.values()) < 0.9, shares
