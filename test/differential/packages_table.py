# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of the trained models that packages of PyPI ship."""

import onnxruntime

import ort_tools_table

TITLE = """# Trained models of packages

Written by `test/differential/run-packages.py --docs` from a run of the ONNX files that {packages} packages of PyPI ship, each compiled without
any option and compared with onnxruntime {version} on random inputs of the sizes of `test/differential/package_models.py`. Of the {made} that
onnxruntime runs, {equal} compile and are equal ({share:.1f} %). Seconds of a processor, and MB of memory at most, are those of
`hone compile`.

| package | file | operators | result | seconds | MB |
| --- | --- | --- | --- | --- | --- |
"""


def outcome(case, reason):
    if case.skipped:
        return "skipped"
    return "equal" if not reason else "refused" if "hone: error" in reason else "not equal"


def write(cases, reasons):
    """Of a run's cases; `reasons` by name, None where a case is equal."""
    rows = [f"| {case.package.replace('==', ' ')} | {case.file.partition('/')[2]} | {case.operators} | {outcome(case, reasons[case.name])} "
            f"| {case.seconds:.1f} | {case.megabytes:.0f} |" for case in cases]
    made = [case for case in cases if not case.skipped]
    equal = sum(not reasons[case.name] for case in made)
    title = TITLE.format(packages=len({case.package for case in cases}), version=onnxruntime.__version__, made=len(made), equal=equal,
                         share=100 * equal / max(1, len(made)))
    return (title + "\n".join(rows) + "\n"
            + ort_tools_table.list_reasons("Refused, or not equal", {name: reason for name, reason in reasons.items() if reason})
            + ort_tools_table.list_reasons("Skipped", {case.name: case.skipped for case in cases if case.skipped}))
