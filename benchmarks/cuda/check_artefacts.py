# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_artefacts.py FOLDER [NAME]: runs what make_bundle.py made on this machine's GPU, and compares the answers.

Prints a line for each artefact whose answers differ or that this machine cannot run, for lack of a second GPU, NCCL or MPI, and
`N passed, N failed[, N skipped]` at the end; the exit code is 1 where one failed. NAME selects artefacts whose name contains it. A text may
diverge where the CPU preferred its token by less than MARGIN to the next best, which is printed too.
"""

import ctypes
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

TIMEOUT_SECONDS = 600
MARGIN = 1e-3  # of logits, which are about 10


def lack(runtime, ranks):
    """What this machine lacks for so many ranks, or None."""
    count = ctypes.c_int()
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    if count.value < ranks:
        return f"{ranks} GPUs are needed, and there are {count.value}"
    if not shutil.which("mpirun"):
        return "there is no mpirun"
    for library in "libnccl.so.2", runtime / "libhone_mpi.so":
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"cannot load {error}"
    return None


def environment_of(runtime):
    """Of programs in that folder, whose libraries are there too."""
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(runtime), os.environ.get("LD_LIBRARY_PATH")]))}


def run(runtime, folder, command, ranks):
    """None, or the first message of hone-run where it fails, and the first difference that it names."""
    mpirun = ["mpirun", "-n", str(ranks), "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    result = subprocess.run([*(mpirun if ranks > 1 else []), runtime / "hone-run", *command], cwd=folder, env=environment_of(runtime), capture_output=True, text=True,
                            errors="replace", timeout=TIMEOUT_SECONDS)
    lines = [line for line in result.stderr.splitlines() + result.stdout.splitlines() if line.strip()]
    differences = [line for line in lines[1:] if ": failed: " in line]
    return None if result.returncode == 0 else "; ".join([*lines[:1], *differences[:1]]) or "no message"


def read_tokens(path):
    """The integers of an array that hone-run wrote: int64 after a text header."""
    content = path.read_bytes()
    begin = 10 + int.from_bytes(content[8:10], "little")
    return list(struct.unpack(f"<{(len(content) - begin) // 8}q", content[begin:]))


def compare_tokens(name, tokens, expected, margins):
    """How a continuation differs from the CPU's, or None."""
    at = next((i for i, (one, other) in enumerate(zip(tokens, expected)) if one != other), min(len(tokens), len(expected)))
    if tokens == expected:
        return None
    if at < len(margins) and at < len(tokens) and margins[at] < MARGIN:
        print(f"{name}: diverges after {at} tokens, where the CPU's token was better by {margins[at]}", flush=True)
        return None
    return f"chose {tokens[at:at + 1]} after {at} tokens, where the CPU chose {expected[at:at + 1]}, better by {margins[at:at + 1]}"


def difference(runtime, folder, check):
    """Why an artefact fails its check, or None."""
    for number, command in enumerate(check["commands"]):
        failure = run(runtime, folder, command, check.get("ranks", 1))
        if not failure and "tokens" in check:
            tokens = folder / command[-1]
            failure = compare_tokens(check["name"], read_tokens(tokens), check["tokens"][number], check["margins"][number])
            tokens.unlink()
        if failure:
            return failure
    return None


def main():
    root, only = pathlib.Path(sys.argv[1]).resolve(), "".join(sys.argv[2:3])
    passed = failed = skipped = 0
    for path in sorted(root.glob("*/check.json")):
        check = json.loads(path.read_text())
        if only not in check["name"]:
            continue
        missing = lack(root.parent / "runtime", check["ranks"]) if check.get("ranks", 1) > 1 else None
        if missing:
            print(f"{check['name']}: skipped: {missing}", flush=True)
            skipped += 1
            continue
        reason = difference(root.parent / "runtime", path.parent, check)
        passed, failed = passed + (reason is None), failed + (reason is not None)
        if reason:
            print(f"{check['name']}: {reason}", flush=True)
    if not passed + failed + skipped:
        raise SystemExit(f"check_artefacts.py: expected artefacts with {only!r} in their name, but there are none in {root}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
