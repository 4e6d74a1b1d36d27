# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""terminal.py COMMAND...: runs the command with standard error on a terminal of 60 columns, and prints what that received: each line,
and in brackets what was written over before the next. Ends as the command does."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

COLUMNS = 60
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
process = subprocess.Popen(sys.argv[1:], stderr=theirs)
os.close(theirs)
received = b""
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # the last writer is gone
        break
    if not piece:
        break
    received += piece
for line in received.decode().replace("\r\n", "\n").split("\n"):
    *gone, left = line.split("\r\x1b[K")
    for text in filter(None, gone):
        assert len(text) < COLUMNS, text
        print(f"({text})")
    if left:
        print(left)
sys.exit(process.wait())
