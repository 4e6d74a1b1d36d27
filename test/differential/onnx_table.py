# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The table of operators in the documentation, from the results of the node tests.

from collections import defaultdict

import onnx.defs


OLDEST = 11  # the first opset that Hone reads

HEADER = """# ONNX operators

Written by `test/differential/run-node-tests.py --docs` from a run of ONNX's own node tests ({passed} of {total} pass), each
compiled and run at its own tolerance. *Versions* are those that the operator has from opset {oldest} on; *cases* are the
tests of the operator that pass and that there are, among them those of its expansion into other operators.

Which tests count: the model imports the default domain, and none beside it but ai.onnx.preview and ai.onnx.preview.training; inputs and outputs are tensors, none
of strings; no operator on sequences, optionals, strings or images, no random one, and none that has a training mode.

| operator | versions | cases | what fails |
| --- | --- | --- | --- |
"""


PREVIEWS = {"ai.onnx.preview": "preview", "ai.onnx.preview.training": "training"}


def get_versions():
    """Versions of every operator of the default domain that some opset from OLDEST on means, and those of the preview domains."""
    versions, previews = defaultdict(set), defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].add((schema.since_version, schema.deprecated))
        elif schema.domain in PREVIEWS:
            previews[schema.name].append(f"{PREVIEWS[schema.domain]} {schema.since_version}")
    kept = {}
    for name, pairs in versions.items():
        last = max((version for version, _ in pairs if version <= OLDEST), default=None)
        kept[name] = sorted(version for version, gone in pairs if not gone and (version > OLDEST or version == last))
    return {**previews, **kept}


def describe_failures(failed, known):
    reasons = defaultdict(int)
    for name, result in failed.items():
        reasons[known.get(name, f"{result['stage']}: {result['reason']}")] += 1
    return "; ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in sorted(reasons.items()))


def make_table(results, known):
    operators = defaultdict(dict)
    for name, result in results.items():
        operators[result["operator"]][name] = result
    versions = get_versions()
    rows = []
    for operator in sorted(operators):
        cases = operators[operator]
        failed = {name: result for name, result in cases.items() if result["stage"]}
        numbers = ", ".join(str(version) for version in versions.get(operator, []))
        why = describe_failures(failed, known).replace("|", "\\|")
        rows.append(f"| {operator} | {numbers} | {len(cases) - len(failed)}/{len(cases)} | {why} |")
    passed = sum(1 for result in results.values() if not result["stage"])
    return HEADER.format(passed=passed, total=len(results), oldest=OLDEST) + "\n".join(rows) + "\n"
