# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_artefacts.py FOLDER [NAME]: runs what make_artefacts.py made on this machine's GPU, and compares the answers.

Prints a line for each artefact whose answers are others or that this machine cannot run, for want of a second GPU, NCCL or MPI, and
`N passed, N failed[, N skipped]` at the end; the exit code is 1 where one failed. NAME leaves out artefacts whose name does not contain it.
"""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

TIMEOUT_SECONDS = 600


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


def run(runtime, folder, command, ranks):
    """The output of hone-run; its first message where it fails."""
    environment = {**os.environ}
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(runtime), environment.get("LD_LIBRARY_PATH")]))
    mpirun = ["mpirun", "-n", str(ranks), "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    result = subprocess.run([*(mpirun if ranks > 1 else []), runtime / "hone-run", *command], cwd=folder, env=environment, capture_output=True, text=True,
                            errors="replace", timeout=TIMEOUT_SECONDS)
    message = (result.stderr or result.stdout).strip().splitlines()
    return result.stdout, None if result.returncode == 0 else (message or ["no message"])[0]


def difference(runtime, folder, check):
    """Why an artefact does not do what it shall, or None."""
    for number, command in enumerate(check["commands"]):
        output, failure = run(runtime, folder, command, check.get("ranks", 1))
        if failure:
            return failure
        expected = check.get("texts", [])[number:number + 1] or [output]
        if output != expected[0]:
            same = len(os.path.commonprefix([output, expected[0]]))
            return f"wrote {output[same:same + 40]!r} behind {same} characters, where the CPU wrote {expected[0][same:same + 40]!r}"
    return None


def main():
    root, only = pathlib.Path(sys.argv[1]).resolve(), "".join(sys.argv[2:3])
    passed = failed = skipped = 0
    for path in sorted(root.glob("*/check.json")):
        check = json.loads(path.read_text())
        if only not in check["name"]:
            continue
        missing = lack(root / "runtime", check["ranks"]) if check.get("ranks", 1) > 1 else None
        if missing:
            print(f"{check['name']}: skipped: {missing}", flush=True)
            skipped += 1
            continue
        reason = difference(root / "runtime", path.parent, check)
        passed, failed = passed + (reason is None), failed + (reason is not None)
        if reason:
            print(f"{check['name']}: {reason}", flush=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


sys.exit(main())
