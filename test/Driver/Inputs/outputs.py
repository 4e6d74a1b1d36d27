# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""outputs.py CASE OUTPUT COMMAND...: what others do to OUTPUT while the command makes it. Prints how the command ended, what it said, and
what is there.

meanwhile-folder, meanwhile-file, meanwhile-added: stops the command once its temporary folder or file is there, puts something at OUTPUT or
into it, and lets the command go on. together: runs the command several times at once."""

import pathlib
import shutil
import signal
import subprocess
import sys
import time

case, output, command = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]


def temporaries():
    return sorted(output.parent.glob(output.name + ".tmp-*"))


def start():
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def put():
    if case == "meanwhile-file":
        output.write_text("thesis\n")
    else:
        output.mkdir(exist_ok=True)
        (output / "thesis.txt").write_text("thesis\n")


def run_stopped():
    """True where the command was stopped before it was done."""
    process = start()
    while process.poll() is None and not temporaries():
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    stopped = process.poll() is None and bool(temporaries())
    if stopped:
        put()
    process.send_signal(signal.SIGCONT)
    said = process.communicate()[1]
    if stopped:
        print("exit", process.returncode, "and", said.strip())
    return stopped


def read(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*")}


def run_together():
    subprocess.run(command, check=True)
    expected = read(output)
    for turn in range(4):
        processes = [start() for _ in range(3)]
        for process in processes:
            said = process.communicate()[1]
            assert process.returncode == 0 and not said, said
        assert read(output) == expected
        if turn == 1:
            shutil.rmtree(output)


if case == "together":
    run_together()
    print("all succeeded")
else:
    for attempt in range(20):
        if run_stopped():
            break
    print("there:", output.read_text().strip() if output.is_file() else sorted(file.name for file in output.iterdir()))
print("left:", len(temporaries()))
