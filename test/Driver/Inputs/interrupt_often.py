# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""interrupt_often.py FOLDER COMMAND...: runs the command, which makes something new in FOLDER, to its end once, and then sends it
SIGINT at several shares of that time. Each run has to leave FOLDER as it was, or with all that the whole run made."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
before = set(os.listdir(folder))
start = time.monotonic()
subprocess.run(command, check=True)
whole = time.monotonic() - start
made = set(os.listdir(folder)) - before


def remove():
    for name in set(os.listdir(folder)) - before:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()


times = 5
for number in range(times):
    remove()
    process = subprocess.Popen(command)
    try:
        process.wait(timeout=whole * (number + 0.5) / times)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
    left = set(os.listdir(folder)) - before
    assert process.returncode in (0, -signal.SIGINT), process.returncode
    # What is complete before the last file is may stay: each appears whole.
    assert left <= made and (process.returncode or left == made), left
remove()
print("left all or nothing", times, "times")
