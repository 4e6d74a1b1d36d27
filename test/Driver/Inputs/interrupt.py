# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""interrupt.py FOLDER SIGNAL COMMAND...: sends SIGNAL as soon as the command has made something new in FOLDER, and prints
how the command ended. Where the command was faster, it is run again."""

import os
import pathlib
import signal
import subprocess
import sys

folder, number, command = pathlib.Path(sys.argv[1]), signal.Signals[sys.argv[2]], sys.argv[3:]
for attempt in range(50):
    before = set(os.listdir(folder))
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and set(os.listdir(folder)) == before:
        pass
    process.send_signal(number)
    status = process.wait()
    if status:
        break
print("ended by", signal.Signals(-status).name if status < 0 else status)
