# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""make_weights.py ARTEFACT: writes the weights of an artefact that carries none.

`weights.header` in it is the beginning of `weights.safetensors`: the table of its tensors. They become random floats of both signs
with one exponent. Fails where the disk is too small.
"""

import json
import os
import pathlib
import random
import shutil
import sys

BLOCK = 64 << 20  # bytes that are repeated
# Per type: bytes of an element, the mask that keeps its sign and mantissa, and the exponent that makes it 2^-6 … 2^-5.
FLOATS = {"BF16": (2, 0x807F, 0x3C80), "F16": (2, 0x83FF, 0x2400), "F32": (4, 0x807FFFFF, 0x3C800000)}


def random_elements(dtype, size):
    """A block of elements of a type."""
    width, mask, exponent = FLOATS[dtype]
    count = size // width
    drawn = random.Random(dtype).getrandbits(8 * size)
    masks, exponents = (int.from_bytes(value.to_bytes(width, "little") * count, "little") for value in (mask, exponent))
    return (drawn & masks | exponents).to_bytes(size, "little")


def write_weights(folder, size=BLOCK):
    """Writes them under another name first, so that no partial file is left."""
    header = (folder / "weights.header").read_bytes()
    tensors = json.loads(header[8:])
    tensors.pop("__metadata__", None)
    tensors = sorted(tensors.items(), key=lambda item: item[1]["data_offsets"])
    total = len(header) + max(tensor["data_offsets"][1] for _, tensor in tensors)
    if shutil.disk_usage(folder).free < total:
        raise SystemExit(f"make_weights.py: {folder}: expected {total} bytes of free space on the disk")
    blocks, part = {}, folder / "weights.part"
    with open(part, "wb") as file:
        file.write(header)
        for _, tensor in tensors:
            begin, end = tensor["data_offsets"]
            if tensor["dtype"] not in blocks:
                blocks[tensor["dtype"]] = random_elements(tensor["dtype"], size)
            block = blocks[tensor["dtype"]]
            file.seek(len(header) + begin)
            for at in range(begin, end, size):
                file.write(memoryview(block)[:min(size, end - at)])
    os.replace(part, folder / "weights.safetensors")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__.split(":", maxsplit=1)[0])
    write_weights(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
