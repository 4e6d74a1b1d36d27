# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""truncate_in_use.py FILE COMMAND...: runs COMMAND; once it has FILE mapped, truncates FILE to a page, and restores it afterwards. Prints the last
line on standard error, the exit code, and what the folder of FILE and the current one hold that they did not before."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

file, command = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
copy = file.with_name(file.name + ".copy")


def maps(process):
    """Whether a process has the file mapped."""
    try:
        return str(file) in pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return False


def run_truncated():
    """The exit code and standard error of the command; None where it ended before the file was truncated."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not maps(process):
        time.sleep(0.0005)
    process.send_signal(signal.SIGSTOP)
    is_mapped = maps(process)
    if is_mapped:
        os.truncate(file, os.sysconf("SC_PAGESIZE"))
    process.send_signal(signal.SIGCONT)
    errors = process.communicate()[1]
    shutil.copyfile(copy, file)
    return (process.returncode, errors) if is_mapped and process.returncode != 0 else None


def names():
    return {str(path) for folder in (file.parent, pathlib.Path.cwd()) for path in folder.iterdir()}


shutil.copyfile(file, copy)
before = names()
for _ in range(20):
    if result := run_truncated():
        break
code, errors = result
print("message:", errors.splitlines()[-1] if errors else "")
print("exit", code)
print("new files:", sorted(names() - before))
