# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instruction sets (ISAs) that engines are capped to, and how each engine is told. onnxruntime cannot be."""

import os
from dataclasses import dataclass

GGML = {"avx2": ("AVX", "AVX2", "FMA", "F16C", "BMI2"), "avx_vnni": ("AVX_VNNI",), "avx512": ("AVX512",),
        "avx512_vnni": ("AVX512_VNNI",), "avx512_bf16": ("AVX512_BF16",), "amx": ("AMX_TILE", "AMX_INT8", "AMX_BF16")}  # what each adds to the one before
ONEDNN = {"avx2": "AVX2", "avx_vnni": "AVX2_VNNI", "avx512": "AVX512_CORE", "avx512_vnni": "AVX512_CORE_VNNI",
          "avx512_bf16": "AVX512_CORE_BF16", "amx": "AVX512_CORE_AMX"}


@dataclass(frozen=True)
class Isa:
    """A name of include/hone/cpu/isa.def, or `native`, which caps nothing."""

    name: str

    @property
    def caps(self):
        return self.name != "native"

    def label(self, base):
        """The name of what is built for this ISA."""
        return f"{base}-{self.name}" if self.caps else base

    def including(self):
        names = list(ONEDNN)
        below = [name for name in names[:names.index(self.name)] if name != "avx_vnni"]  # a part of no other
        return [*below, self.name]

    @property
    def has_avx512(self):
        return "avx512" in self.including()

    def environment(self):
        """Variables for oneDNN, so OpenVINO, PyTorch and Hone, and for PyTorch's own kernels and MKL."""
        if not self.caps:
            return {}
        vectors = "AVX512" if self.has_avx512 else "AVX2"
        return {"ONEDNN_MAX_CPU_ISA": ONEDNN[self.name], "ATEN_CPU_CAPABILITY": vectors.lower(),
                "MKL_ENABLE_INSTRUCTIONS": vectors}

    def ggml(self):
        """Options of CMake for a llama.cpp of this ISA."""
        if not self.caps:
            return "-DGGML_NATIVE=ON"
        on = {word for name in self.including() for word in GGML[name]}
        words = [word for group in GGML.values() for word in group]
        return "-DGGML_NATIVE=OFF " + " ".join(f"-DGGML_{word}={'ON' if word in on else 'OFF'}" for word in words)

    def hone_build(self):
        """A command that builds Hone's runtime with the kernels of this ISA and those below, and nothing above."""
        kernels = ";".join(self.including())
        configure = f"cmake --preset release -B '{{work}}/{self.label('build')}' '-DHONE_KERNEL_ISAS={kernels}'"
        build = f"cmake --build '{{work}}/{self.label('build')}' --target hone-run hone_rt hone-kernel-ratios"
        return ("sh", "-c", f"cd '{{source}}' && {configure} && {build}")

    def hone_options(self):
        """Options of `hone compile` for the code that it generates."""
        if not self.caps:
            return ()
        return ("--mcpu=x86-64-v4",) if self.has_avx512 else ("--mcpu=x86-64-v3",)


NAMES = ("native", *reversed(ONEDNN))


def settings(isa):
    return {**os.environ, **isa.environment()}
