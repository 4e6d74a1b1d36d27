# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""needed_libraries.py OBJDUMP FOLDER FILE...: writes files into FOLDER that are no libraries, under the names of all that the FILEs are
linked with: whoever looks for those there fails."""

import pathlib
import re
import subprocess
import sys

objdump, folder, files = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
for file in files:
    dump = subprocess.run([objdump, "-p", file], check=True, capture_output=True, text=True).stdout
    for name in re.findall(r"^ *NEEDED *(.*)$", dump, re.MULTILINE):
        (folder / name).write_text("no library\n")
