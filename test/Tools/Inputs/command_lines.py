# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls programs with the same arguments, and prints of each its name, its exit code and what it said.

Usage: command_lines.py PROGRAM... -- ARGUMENT...
"""

import os
import subprocess
import sys

split = sys.argv.index("--")
for program in sys.argv[1:split]:
    done = subprocess.run([program, *sys.argv[split + 1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    print(f"{os.path.basename(program)}: {done.returncode}: {done.stdout.rstrip()}")
