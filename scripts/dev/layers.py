# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who may include whom (docs/architecture.md, "Rooms"): complaints(path, lines) names includes that break the rules."""

import posixpath
import re

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# What a room of runtime/ may use besides itself, the binary interface, include/hone/runtime, and the table of kernels,
# include/hone/kernels.
USES = {
    "c_api": {"core", "generate", "io", "sampling", "text"},
    "calibration": {"cpu", "io"},
    "cli": {"calibration", "core", "cpu", "generate", "io", "plan", "sampling", "speculate", "text"},
    "core": {"cpu", "io", "sampling"},
    "cpu": {"io"},
    "cuda": {"core", "io", "sampling"},
    "generate": {"core", "io", "sampling", "speculate", "text"},
    "io": set(),
    "mpi": set(),
    "plan": {"io"},
    "sampling": {"io"},
    "speculate": {"io"},
    "text": {"io"},
}
INTERFACE = {"kernels", "runtime"}
PUBLIC = set(USES) | INTERFACE  # folders of include/hone that belong to the runtime
COMPILER_FOLDERS = {"dialects", "lib", "tools"}
COMPILER_LIBRARIES = {"llvm", "llvm-c", "lld", "mlir", "mlir-c", "onnx", "google"}


def resolve(path, target):
    """What an include names, as if from include/ or runtime/: a path that climbs out of its folder is followed."""
    if not target.startswith("../"):
        return target
    whole = posixpath.normpath((path.parent / target).as_posix())
    return whole.removeprefix("include/").removeprefix("runtime/")


def room_of(path):
    """The room of runtime/ that a file belongs to, "runtime" for the binary interface, "compiler", or None."""
    parts = path.parts
    if parts[0] == "runtime" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "hone"):
        return parts[2] if parts[2] in PUBLIC else "compiler"
    return "compiler" if parts[0] in COMPILER_FOLDERS else None


def fault_of_compiler(target):
    if target.split("/")[0] in USES and "/" in target:
        return "the compiler includes of the runtime what is in include/hone"
    return None


def fault_of_runtime(room, target):
    first, *rest = target.split("/")
    if first in COMPILER_LIBRARIES and rest:
        return "the runtime includes nothing of the compiler's libraries"
    if first in COMPILER_FOLDERS or first == "hone" and rest[0] not in PUBLIC:
        return "the runtime includes nothing of the compiler"
    used = rest[0] if first == "hone" else first if rest and first in USES else room
    allowed = USES.get(room, {"io"}) | {room} | INTERFACE
    if used not in allowed:
        return f"{room} uses {', '.join(sorted(allowed - {room} - INTERFACE)) or 'nothing'} of the runtime"
    return None


def complaints(path, lines):
    room = room_of(path)
    for number, line in enumerate(lines, 1) if room else ():
        if match := INCLUDE.match(line):
            target = resolve(path, match[1] or match[2])
            fault = fault_of_compiler(target) if room == "compiler" else fault_of_runtime(room, target)
            if fault:
                yield number, f"includes {target}: {fault} (docs/architecture.md)"
