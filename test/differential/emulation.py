# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools on the emulated driver (test/emulation), which count what they execute there."""

import json

import sessions
import suite

# Attention multiplies sixteen bits of mantissa on a device, which alone stays within what other models keep (sessions.TOLERANCE).
TOLERANCES = {
    # Biases of queries and keys make its logits of attention so large that a 65536th of them is seen in the answers: 1.3e-4 where
    # attention in f32 gives 7e-6.
    "qwen2": 1e-3}


class Beyond(Exception):
    """A program that executes more instructions of warps than it may: those that it did execute."""

    def __init__(self, count):
        super().__init__(f"{count / 1e6:.0f} million instructions of warps and more")


def run_tool(command, folder, budget):
    """Runs a tool on the emulated GPU; Beyond where kernels execute more than `budget` instructions of warps."""
    report = folder / "report.json"
    try:
        suite.run_tool(command, variables={"HONE_EMULATED_INSTRUCTIONS": str(budget), "HONE_EMULATED_REPORT": str(report)})
    except suite.Failure:
        count = sum(kernel["instructions"] for kernel in json.loads(report.read_text())["kernels"].values()) if report.exists() else 0
        if count > budget:
            raise Beyond(count) from None
        raise


def tolerance_of(path):
    names = [path.parent.name, path.parent.name.split(".")[0]]
    return next((TOLERANCES[name] for name in names if name in TOLERANCES), sessions.TOLERANCE)
