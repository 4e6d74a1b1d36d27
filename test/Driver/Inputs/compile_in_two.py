# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compile_in_two.py FOLDER HONE-COMPILE...: runs the command, and again by way of a file of the IR after each of some phases, as
bytecode and as text, and compares the bytes of the artefacts. Prints how many artefacts are the same. Only the name of the
file that an artefact was made from may be another one."""

import json
import pathlib
import shutil
import subprocess
import sys

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]


def compile_to(output, call):
    subprocess.run([*call, "-o", output, "--quiet"], check=True)


def read(artefact):
    files = {path.name: path.read_bytes() for path in sorted(artefact.iterdir())}
    manifest = json.loads(files["manifest.json"])
    del manifest["source"]["name"]
    return {**files, "manifest.json": manifest}


def by_way_of(phase, following, form):
    ir, artefact = folder / f"{phase}.{form}", folder / f"{phase}-{form}.hone"
    compile_to(ir, [*command, f"--stop-after={phase}"])
    compile_to(artefact, [*command[:2], ir, *command[3:], f"--start-from={following}"])
    return read(artefact)


shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
compile_to(folder / "at-once.hone", command)
expected = read(folder / "at-once.hone")
same = 0
for way in ("rewrite", "lower", "mlirbc"), ("rewrite", "lower", "mlir"), ("lower", "tensor", "mlirbc"):
    found = by_way_of(*way)
    assert found.keys() == expected.keys(), (way, found.keys())
    for name, content in expected.items():
        assert found[name] == content, (way, name)
    same += 1
print(same, "artefacts are the same")
