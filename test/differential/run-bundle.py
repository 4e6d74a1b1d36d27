# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bundle for machines with a GPU (./dev bundle-cuda), small, where nothing of the build is: what is called there starts, finds its
files and libraries, and gives answers, with an emulated driver in place of the machine's; without one it is skipped."""

import functools
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import suite

sys.path.append(str(suite.ROOT / "benchmarks" / "cuda"))
import make_bundle  # noqa: E402

MODEL = "qwen2.genai"
# Arguments of `run`, and what it prints.
CALLS = {
    "kernels": (["kernels", "*RopeAloneParity*"], r"PASSED  \] [1-9]"),
    "sampler": (["kernels", "*SamplingParity*/0"], r"PASSED  \] [1-9]"),
    "runtime": (["runtime", "Devices.*"], r"PASSED  \] [1-9]"),
    "artefacts": (["artefacts"], "^1 passed, 0 failed"),
    "bench of a kernel": (["bench", "--small", "rms_norm"], r"rms_norm\.bf16\.1x256 +\d"),
    "bench of a model": (["bench", "--small", "model.tiny"], r"\ntiny +\d"),
}
WITHOUT_DRIVER = (["test"], r"^skipped: cannot open the CUDA driver: libcuda\.so\.1")


def hide(folder):
    """Words before a command that let it see an empty folder there, where the system lets anybody do so."""
    words = ["unshare", "--map-root-user", "--mount", "bash", "-c", f'mount -t tmpfs none "{folder}" && exec "$@"', "bash"]
    possible = subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if possible else []


def has_driver():
    """Whether the machine has a driver of its own."""
    return subprocess.run(["python3", "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"], env={"PATH": "/usr/bin:/bin"},
                          capture_output=True).returncode == 0


def start(bundle, arguments, libraries):
    """`run`; nothing but its arguments and PATH tells it where anything is."""
    environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(libraries)}
    return subprocess.run([*hide(suite.ROOT), bundle / "run", *arguments], cwd="/", env=environment, capture_output=True, text=True,
                          errors="replace", timeout=suite.TIMEOUT_SECONDS)


def call(bundle, arguments, libraries):
    """What it prints."""
    result = start(bundle, arguments, libraries)
    if result.returncode:
        raise suite.Failure(f"exit {result.returncode}: {suite.one_line(result.stderr or result.stdout)}")
    return result.stdout


def check(case, bundle, drivers):
    arguments, expected = case
    output = call(bundle, arguments, drivers if case is not WITHOUT_DRIVER else bundle.parent)
    if not re.search(expected, output):
        raise suite.Failure(f"expected {expected!r} in what it prints, but got {suite.one_line(output)!r}")


def check_refusals(bundle, drivers):
    """A bundle of some parts says what it lacks, and one for a newer machine that this one is older."""
    parts = bundle.parent / "parts"
    shutil.copytree(bundle, parts)
    for file in parts.glob("runtime/*Tests"):
        file.unlink()
    if "kernels: not in this bundle" not in (output := call(parts, ["test"], drivers)):
        raise suite.Failure(f"expected it to say that kernels are not there, but got {suite.one_line(output)!r}")
    expect_refusal(parts, ["kernels"], drivers, "run: this bundle was made without what 'kernels' runs; './dev bundle-cuda' makes one with all")
    (parts / "runtime" / "glibc").write_text("2.999\n")
    expect_refusal(parts, ["test"], drivers, f"run: expected glibc 2.999 or newer, but this machine has {platform.libc_ver()[1]}")


def expect_refusal(bundle, arguments, drivers, message):
    result = start(bundle, arguments, drivers)
    if result.returncode != 1 or result.stderr.strip() != message:
        raise suite.Failure(f"expected exit 1 and {message!r}, but got {result.returncode} and {result.stderr.strip()!r}")


def main():
    options = suite.parser(__doc__).parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made, bundle, drivers = folder / "made", folder / "elsewhere" / "bundle", folder / "drivers"
        maker = make_bundle.Bundle(build, made)
        maker.add_programs()
        maker.add_model(MODEL, suite.models(own=True)[f"{MODEL}/model"])
        maker.add_shape("tiny")
        bundle.parent.mkdir()
        os.rename(made, bundle)
        drivers.mkdir()
        for library in [*(build / "test/emulation/lib").iterdir(), *(build / "test/emulation/blas/lib").iterdir()]:
            shutil.copy(library, drivers)
        cases = [(what, case) for what, case in CALLS.items() if options.only in what]
        if not has_driver():
            cases.append(("without a driver", WITHOUT_DRIVER))
        checks = [(what, functools.partial(check, case, bundle, drivers)) for what, case in cases]
        if options.only in "refusals":
            checks.append(("refusals", functools.partial(check_refusals, bundle, drivers)))
        return suite.run_all(checks, lambda run: run(), options.jobs)


sys.exit(main())
