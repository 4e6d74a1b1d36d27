# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether kernels that an ISA takes from one below are what it would have had: their sources, preprocessed for both, have to be the same.

usage: kernel_sources.py BUILD; BUILD/compile_commands.json says what is compiled for which ISA (runtime/cpu/CMakeLists.txt).
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys

NAMESPACE = re.compile(r"-DHONE_ISA_NAMESPACE=(\w+)")


def read_commands(build):
    """For each ISA, lowest first, its sources with their commands."""
    isas = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if found := NAMESPACE.search(entry["command"]):
            isas.setdefault(found[1], {})[pathlib.Path(entry["file"])] = entry["command"]
    rows = re.findall(r"^HONE_ISA\(\w+, (\w+)", (pathlib.Path("include/hone/cpu/isa.def")).read_text(), re.MULTILINE)
    return {name: isas[name] for name in rows if name in isas}


def preprocess(command, source):
    """The text of a source as the compiler reads it with the options of a command."""
    options, skipped = [], False
    for word in shlex.split(NAMESPACE.sub("-DHONE_ISA_NAMESPACE=isa", command)):
        if not skipped and word not in ("-o", "-c"):
            options.append(word)
        skipped = word in ("-o", "-c")
    return subprocess.run([*options, "-E", "-P", source], check=True, capture_output=True, text=True).stdout


def main():
    isas = read_commands(pathlib.Path(sys.argv[1]))
    below, compared = {}, 0  # the command of the highest ISA that has a source
    for isa, commands in isas.items():
        table = next(command for source, command in commands.items() if source.name == "table.cpp")
        for source, command in below.items():
            if source in commands:
                continue
            compared += 1
            if preprocess(table, source) != preprocess(command, source):
                print(f"{source.name}: differs for {isa}, which has to be among its SOURCES in runtime/cpu/CMakeLists.txt")
        below |= commands
    print(f"compared {compared} sources of {len(isas)} ISAs")


main()
