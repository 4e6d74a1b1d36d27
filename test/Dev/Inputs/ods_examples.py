# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ods_examples.py HONE_OPT FILES.td...: parses every ```mlir example of the descriptions, each as a module of its own."""

import pathlib
import re
import subprocess
import sys
import textwrap


def main():
    count = failures = 0
    for path in map(pathlib.Path, sys.argv[2:]):
        for example in re.findall(r"^( *```mlir\n.*?)^ *```", path.read_text(), re.MULTILINE | re.DOTALL):
            text = textwrap.dedent(example).split("\n", 1)[1]
            run = subprocess.run([sys.argv[1], "-"], input=text, capture_output=True, text=True)
            count += 1
            if run.returncode:
                failures += 1
                print(f"{path}: this example does not parse:\n{text}{run.stderr}")
    print(f"{count} examples, {failures} do not parse")
    return 1 if failures or not count else 0


sys.exit(main())
