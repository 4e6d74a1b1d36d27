# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""interrupt_at.py SIGNAL WORDS COMMAND...: sends SIGNAL as soon as the command says WORDS on standard error, and prints how it
ended. Where the command was faster, it is run again."""

import signal
import subprocess
import sys

number, words, command = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3:]
for attempt in range(20):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            process.send_signal(number)
            break
    said += process.stderr.read()
    status = process.wait()
    assert words in said, said
    if status:
        break
assert "error:" not in said, said
print("ended by", signal.Signals(-status).name if status < 0 else status)
