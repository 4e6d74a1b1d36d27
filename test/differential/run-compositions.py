# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of weights one over the other: whatever options compress a model together, the artefact with kernels computes what the same
weights are by definition, in loops that read them element by element.

Every combination of N:M, bits or codebooks, and outliers is made of a decoder; some of them of a model whose table of embeddings is
its last layer, of a mixture of experts, and of a file that came quantized.
"""

import functools
import itertools
import pathlib
import sys
import tempfile

import numpy as np

import suite

# Kernels of integers round activations to 8 bits where the loops do not round them: half a step of 1 / 127 of a row's largest element,
# 0.4 % of each factor's norm, through some ten layers. An element that is missing, or at the wrong place, changes outputs by more.
TOLERANCE = 3e-2

BASES = {"dense": [], "bf16": ["--weights=bf16"], **{f"int{bits}": [f"--quantize=int{bits}"] for bits in (8, 6, 5, 4, 3, 2)},
         **{f"codebook{bits}": [f"--quantize=int{bits}", "--quantize-method=squeezellm"] for bits in (4, 3, 2)}}
PRUNED = {"": [], "2:4 ": ["--prune=2:4", "--force"]}
OUTLIERS = {"": [], " + outliers": ["--outliers=2%"]}
ALL = {f"{pruned}{base}{outliers}": [*PRUNED[pruned], *BASES[base], *OUTLIERS[outliers]]
       for base, pruned, outliers in itertools.product(BASES, PRUNED, OUTLIERS) if not outliers or base not in ("dense", "bf16")}
SOME = ["2:4 int8", "2:4 int4 + outliers", "int3 + outliers", "2:4 codebook4 + outliers"]
# Forms that the artefact's weights have to be in, whatever else it holds: what follows from the options must not be left out silently.
KERNELS = {"2:4 bf16": "sparse_linear.bf16", "2:4 int8": "sparse_linear.u8", "2:4 int4": "sparse_linear.u4",
           "int3 + outliers": "packed_linear.outliers.u3", "codebook4 + outliers": "packed_linear.outliers.codebook.u4"}
QUANTIZED = "llama.genai-int4"  # whose own integers stay as they are
MODELS = {"llama.dynamo23": ALL, "gpt2.optimum": SOME, "qwen3_moe.optimum": SOME, QUANTIZED: SOME}


def run(tools, artefact, folder, inputs):
    suite.run_tool([tools / "hone-run", "run", artefact, "--inputs", inputs, "--outputs", folder / "out.npz"])
    with np.load(folder / "out.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def check(path, flags, kernel, build):
    tools = build / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rewritten, inputs = folder / "rewritten.mlir", folder / "in.npz"
        with np.load(path.with_suffix(".npz")) as arrays:
            np.savez(inputs, **{key.split("/", 2)[2]: arrays[key] for key in arrays.files if key.startswith("case1/in/")})
        suite.run_tool([tools / "hone", "compile", path, *flags, "--kv-cache=model", "--stop-after=rewrite", "-o", rewritten,
                        "--quiet"])
        suite.run_tool([tools / "hone", "compile", rewritten, "--start-from=lower", "--allow-external-paths", "-o",
                        folder / "kernels.hone", "--quiet"])
        suite.run_tool([tools / "hone", "compile", rewritten, "--start-from=rewrite", "--allow-external-paths",
                        "--pass-pipeline=func.func(hone-decompose)", "-o", folder / "loops.hone", "--quiet"])
        if kernel and f"hone.{kernel}" not in (folder / "kernels.hone" / "manifest.json").read_text():
            raise suite.Failure(f"expected a call of hone.{kernel}")
        got, expected = (run(tools, folder / f"{form}.hone", folder, inputs) for form in ("kernels", "loops"))
        for name, array in expected.items():
            error = np.linalg.norm((got[name] - array).astype(float)) / max(np.linalg.norm(array.astype(float)), 1e-9)
            if not error <= TOLERANCE:
                raise suite.Failure(f"'{name}' differs from what the weights are by {error:.3f} of its norm")


def main():
    options = suite.parser(__doc__).parse_args()
    models = suite.models(own=True)
    cases = [(f"{model} {form}", functools.partial(check, models[f"{model}/model"], ALL[form],
                                                   KERNELS.get(form) if model != QUANTIZED else None))
             for model, forms in MODELS.items() for form in forms]
    chosen = [(name, case) for name, case in cases if options.only in name]
    return suite.run_all(chosen, lambda case: case(options.build), options.jobs)


sys.exit(main())
