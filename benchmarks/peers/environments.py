# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python environments of the peers: made once, from requirements-NAME.txt."""

import os
import pathlib
import subprocess
import sys
import time

from isas import Isa

HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))) / "hone/peers"
BASES = {"engines": None, "optimum": "engines", "llama": None}  # environments, and the one whose packages each sees


def say(*words):
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


def environment(work, name):
    """The bin folder of an environment below `work`; NAME-ISA has what is built for that ISA."""
    root = work / "venv" / name
    name, _, isa = name.partition("-")
    if not (root / "complete").exists():
        base = BASES[name] and environment(work, BASES[name]).parent
        say("installing the environment", name)
        subprocess.run([sys.executable, "-m", "venv", root], check=True)
        packages = next((root / "lib").glob("python*/site-packages"))
        if base:
            (packages / "base.pth").write_text(str(base / packages.relative_to(root)) + "\n", encoding="utf-8")
        settings = {"CMAKE_ARGS": f"{Isa(isa or 'native').ggml()} -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF",
                    "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run([root / "bin/python", "-m", "pip", "install", "-q", *(("--no-cache-dir",) if isa else ()), "-r", HERE / f"requirements-{name}.txt"],
                       check=True, env={**os.environ, **settings})
        (root / "complete").touch()
    return root / "bin"
