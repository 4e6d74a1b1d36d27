# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""special_files.py ENDINGS... [--no-folder] -- COMMAND...: runs the command with {} replaced by a pipe without a writer, a link to a device without an
end, a socket and a folder, each with each ending. Each must be refused at once, in one line. Prints the kinds that were."""

import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys

separator = sys.argv.index("--")
endings, command = sys.argv[1:separator], sys.argv[separator + 1:]
folder = pathlib.Path("special")


def make(kind, path):
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    else:
        path.mkdir()


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
kinds = ["a pipe", "a device", "a socket", "a folder"]
if "--no-folder" in endings:
    endings.remove("--no-folder")
    kinds.remove("a folder")
for kind in kinds:
    for ending in endings:
        path = folder / (kind.split()[1] + ending)
        make(kind, path)
        words = [word.replace("{}", str(path)) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, preexec_fn=limit, stdin=subprocess.DEVNULL)
        lines = done.stderr.splitlines()
        assert done.returncode == 1 and len(lines) == 1 and f"it is {kind}" in lines[0], (words, done)
    print(kind)
