# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sum_losses.py: prints the sum of the losses that the remarks of hone-choose-widths on standard input say."""

import re
import sys

print(repr(sum(map(float, re.findall(r"for a loss of ([0-9.E+-]+)", sys.stdin.read())))))
