# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools in several processes over MPI."""

import os
import shutil
import subprocess

import suite

RANKS = 2
TIMEOUT_SECONDS = 300


def run_suite(description, cases):
    """Calls each of the cases, (name, case), with the build folder; skips all of them without MPI. The exit code."""
    options = suite.parser(description).parse_args()
    chosen = [(name, case) for name, case in cases if options.only in name]
    if not shutil.which("mpirun") or not (options.build / "lib" / "libhone_mpi.so").exists():
        print("skipped: there is no MPI")
        return suite.finish(0, 0, len(chosen))
    return suite.run_all(chosen, lambda case: case(options.build), options.jobs)


def compile_model(tools, path, output, flags=(), ranks=RANKS):
    suite.run_tool([tools / "hone", "compile", path, "--quiet", *flags, f"--tensor-parallel={ranks}", "-o", output])


def start(tools, arguments, ranks=RANKS, variables=None, of_ranks=None, options=()):
    """Runs hone-run as so many processes, or without mpirun for none; the finished process. `variables` are for all, and `of_ranks`
    has more for some of them; `options` are those of mpirun."""
    command = [tools / "hone-run", *arguments]
    if ranks:
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *options]
        for rank in range(ranks):
            given = [word for item in (of_ranks or {}).get(rank, {}).items() for word in ("-x", "=".join(item))]
            mpirun += [*([":"] if rank else []), "-n", 1, *given, *command]
        command = mpirun
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment,
                              timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise suite.Failure(f"{ranks} processes did not end in {TIMEOUT_SECONDS} s") from None


def run(tools, arguments, ranks=RANKS, variables=None, of_ranks=None):
    result = start(tools, arguments, ranks, variables, of_ranks)
    if result.returncode:
        raise suite.Failure(suite.one_line(result.stderr or result.stdout))
    return result.stdout


def expect_sentence(result, what, sentence, lines=None):
    said = [line for line in result.stderr.splitlines() if line.startswith("hone-run: ")]
    if result.returncode != 1:
        raise suite.Failure(f"{what}: expected exit 1, but got {result.returncode}: {suite.one_line(result.stderr)}")
    if not any(sentence in line for line in said) or (lines is not None and len(said) != lines):
        raise suite.Failure(f"{what}: expected one sentence with {sentence!r}, but got {said}")
