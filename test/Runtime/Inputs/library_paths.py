# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""library_paths.py OBJDUMP FOLDER...: the folders that each program and library under the FOLDERs has libraries looked for in (RUNPATH,
RPATH). Fails where one of them is empty or relative: that is below whatever folder happens to be the current one. Prints whether
there were some at all, and the names of those with a RUNPATH."""

import pathlib
import re
import subprocess
import sys

objdump, folders = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]


def is_linked(path):
    """Programs and shared libraries, not objects and archives."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(18)
    return header[:4] == b"\x7fELF" and int.from_bytes(header[16:18], "little") in (2, 3)


# What other tests make lies in their folders "Output", and comes and goes meanwhile.
files = sorted(path for folder in folders for path in folder.rglob("*")
               if "Output" not in path.relative_to(folder).parts and is_linked(path))
found, wrong = set(), []
for path in files:
    dump = subprocess.run([objdump, "-p", path], check=True, capture_output=True, text=True).stdout
    for paths in re.findall(r"^ *R(?:UN)?PATH *(.*)$", dump, re.MULTILINE):
        found.add(path.name)
        # $ORIGIN is the folder of the file itself.
        wrong += [f"{path}: '{paths}'" for place in paths.split(":") if not place.startswith(("/", "$ORIGIN"))]
assert files and not wrong, wrong
print("with a path:", *sorted(found))
