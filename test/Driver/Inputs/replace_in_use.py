# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""replace_in_use.py ARTEFACT HONE-RUN COMMAND...: a process writes a text with ARTEFACT; while it has the weights mapped and has not read all
of them, COMMAND writes another artefact to the same place. Prints what the process had mapped then, and whether its text is that of before."""

import os
import pathlib
import signal
import subprocess
import sys
import time

artefact, program, command = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
WEIGHTS = artefact / "weights.safetensors"
RUN = [program, "run", str(artefact), "--prompt", "def main(", "--max-new-tokens", "200"]


def mapped(process):
    """The inode and the name of the weights that a process maps, or None."""
    try:
        lines = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) == 6 and "weights.safetensors" in fields[5]:
            return int(fields[4]), fields[5]
    return None


def run():
    return subprocess.run(RUN, check=True, capture_output=True).stdout


def run_replaced():
    """What the process writes, and what it maps once the artefact is another; None where it was done too early."""
    process = subprocess.Popen(RUN, stdout=subprocess.PIPE)
    while process.poll() is None and not mapped(process):
        time.sleep(0.0005)
    process.send_signal(signal.SIGSTOP)
    first = mapped(process) if process.poll() is None else None
    if first:
        subprocess.run(command, check=True)
    then = mapped(process)
    process.send_signal(signal.SIGCONT)
    text = process.communicate()[0]
    return (text, first, then, process.returncode) if first else None


before, old = run(), os.stat(WEIGHTS).st_ino
for _ in range(20):
    if result := run_replaced():
        break
text, first, then, code = result
print("exit", code)
print("mapped:", "the old weights," if then[0] == first[0] else "other weights,", "which have no name" if then[1].endswith(" (deleted)") else then[1])
print("at the place:", "the old weights" if os.stat(WEIGHTS).st_ino == old else "others")
print("text:", "that of before" if text == before else "another")
print("next text:", "that of before" if run() == before else "another")
