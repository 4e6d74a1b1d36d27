# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of what onnxruntime's tools make of one export of every architecture."""

import collections
import re

import onnxruntime

import ort_tools
import raised_layers

TITLE = """# What onnxruntime's tools make of models

Written by `test/differential/run-ort-tools.py --docs` from a run of every tool of onnxruntime {version} over {models} small models, one export
of each of {architectures} architectures. Of the {made} files that a tool could make and onnxruntime could run, {equal} compile and equal
onnxruntime ({share:.1f} %). *Skipped* are those that the tool cannot make or onnxruntime cannot run.

*Raised* counts the files in which every layer of attention, every norm, every MLP and every block of experts is an operation of `hone`, by
`hone inspect --json`: {raised} of {made} ({raised_share:.1f} %). What `qdq` and `qoperator` round inside of a layer, as scores and
probabilities, is computed in floats there ([Files of static quantizers](guide.md#files-of-static-quantizers)).

`convert_generation` is not among them: it exports GPT-2 and T5 anew with PyTorch, which onnxruntime 1.31.1 fails to do with transformers 4.46.3
and 4.57.6. The operators that it writes, BeamSearch, GreedySearch and Sampling, are refused by name.

| tool | files | equal | skipped | raised | layers that are not |
| --- | --- | --- | --- | --- | --- |
"""


def shorten(text):
    """A reason without what differs from file to file."""
    text = re.sub(r"onnxruntime refuses \S+", "onnxruntime refuses it", text)
    text = re.sub(r"(Load model from )\S+ failed:", "", text)
    return re.sub(r"\{?'/[^']*'\}?", "…", text)[:160].replace("|", "\\\\|")


def list_reasons(title, reasons):
    """A section with each reason and the cases that it is of."""
    cases = collections.defaultdict(list)
    for name, reason in reasons.items():
        cases[shorten(reason)].append(name)
    rows = "".join(f"| {', '.join(names)} | {reason} |\n" for reason, names in cases.items())
    return f"\n## {title}\n\n| cases | why |\n| --- | --- |\n{rows}" if rows else ""


def write(models, reasons, skipped, layers):
    """`reasons` and `skipped` by (path, tool), None where a case is equal; `layers` what was found in each file."""
    names = {path: name for name, path in models.items()}
    lacking = {case: raised_layers.lacking(raised_layers.expected(case[0]), got) for case, got in layers.items()}
    made = [case for case in reasons if case not in skipped]
    equal = [case for case in made if not reasons[case]]
    raised = [case for case in made if lacking.get(case) == ""]
    rows = []
    for tool in ort_tools.TOOLS:
        files = [case for case in made if case[1] == tool]
        missing = collections.defaultdict(list)
        for case in files:
            if lacking.get(case):
                missing[lacking[case]].append(names[case[0]].split(".")[0])
        text = "; ".join(f"{what} ({', '.join(sorted(set(of)))})" for what, of in missing.items())
        skips = sum(case[1] == tool for case in skipped)
        rows.append(f"| {tool} | {len(files)} | {sum(case in equal for case in files)} | {skips} | {sum(case in raised for case in files)} | {text} |")
    title = TITLE.format(
        version=onnxruntime.__version__, models=len(models), architectures=len({path.parent.name for path in models.values()}), made=len(made),
        equal=len(equal), share=100 * len(equal) / max(1, len(made)), raised=len(raised),
        raised_share=100 * len(raised) / max(1, len(made)))
    named = {kind: {f"{names[path]}/{tool}": reason for (path, tool), reason in found.items() if reason}
             for kind, found in (("failed", {case: reasons[case] for case in made}), ("skipped", skipped))}
    return (title + "\n".join(rows) + "\n" + list_reasons("Refused, or not equal", named["failed"])
            + list_reasons("Skipped", named["skipped"]))
