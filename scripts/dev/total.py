# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""total.py LIT_REPORT [LOGS...]: adds up the suites and prints one line a suite and a last line for all.

A suite that left no summary counts as one failure: what did not report did not pass.
"""

import json
import pathlib
import re
import sys

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


def lit_counts(path):
    try:
        tests = json.loads(path.read_text())["tests"]
    except (OSError, ValueError, KeyError):
        return (0, 1, 0)
    codes = [test["code"] for test in tests]
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    return (passed, len(codes) - passed - skipped, skipped)


def log_counts(path):
    lines = path.read_text().splitlines() if path.exists() else []
    match = SUMMARY.match(lines[-1].strip()) if lines else None
    return tuple(int(group or 0) for group in match.groups()) if match else (0, 1, 0)


def line(counts):
    passed, failed, skipped = counts
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def main():
    paths = [pathlib.Path(argument) for argument in sys.argv[1:]]
    total = [0, 0, 0]
    for path in paths:
        counts = lit_counts(path) if path.suffix == ".json" else log_counts(path)
        print(f"{path.stem}: {line(counts)}")
        total = [a + b for a, b in zip(total, counts)]
    print(line(total))
    return 1 if total[1] or not total[0] else 0


sys.exit(main())
