# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run_examples.py FOLDER OPT [OPTIONS]: runs every example of the dialect's description in FOLDER through OPT.

An operation without an example is an error, so that the reference page shows how each is written.
"""

import pathlib
import re
import subprocess
import sys

EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
OPERATION = re.compile(r'^def Hone_\w+Op : \w+<"(\w+)"', re.MULTILINE)


def main():
    folder, *command = sys.argv[1:]
    names, text, count, failed = [], "", 0, 0
    for path in sorted(pathlib.Path(folder).glob("*.td")):
        source = path.read_text()
        names += OPERATION.findall(source)
        for example in EXAMPLE.findall(source):
            count += 1
            text += example
            result = subprocess.run(command, input=example, text=True, capture_output=True)
            if result.returncode != 0:
                failed += 1
                print(f"{path.name}: this example fails:\n{example}{result.stderr}")
    missing = [name for name in names if f"hone.{name} " not in text]
    print(f"{len(names)} operations, {count} examples, {failed} fail, without example: {', '.join(missing) or 'none'}")
    return 1 if failed or missing else 0


sys.exit(main())
