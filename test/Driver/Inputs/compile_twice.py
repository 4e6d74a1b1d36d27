# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compile_twice.py FOLDER HONE-COMPILE...: runs the command with one thread and with two, and compares the bytes of what it writes
to FOLDER, of its report, and of its remarks. Prints how many files those are."""

import os
import pathlib
import shutil
import subprocess
import sys

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]


def run(threads):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    outputs = ["-o", folder / "model.hone", f"--report={folder}/report.json", f"--remarks={folder}/remarks.yaml"]
    subprocess.run([*command, *outputs, "--quiet"], check=True, env=environment)
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


first, second = run(1), run(2)
assert first.keys() == second.keys(), (first.keys(), second.keys())
for name, data in first.items():
    assert data == second[name], name
print(len(first), "files are the same")
