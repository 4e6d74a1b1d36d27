# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of the small models that packages export (exporters/)."""

import onnxruntime

from ort_tools_table import list_reasons

TITLE = """# Models of other exporters

Written by `test/differential/run-exporters.py --docs` from a run of the small random models of `test/differential/exporters/`, each made by
its package, compiled, and compared with onnxruntime {version}: {equal} of the {made} that can be made and run compile and are equal
({share:.1f} %). Of {transformers} transformers among them, all layers of attention, norms and MLPs of {raised} are raised. Packages that were not
installed for this run: {absent}.

| package | equal | not | skipped |
| --- | --- | --- | --- |
"""


def write(reasons, skipped, absent, lacking, transformers):
    """`reasons` by name, None where a case is equal; `lacking` the layers of transformers that are not raised."""
    made = [name for name in reasons if name not in skipped]
    equal = [name for name in made if not reasons[name]]
    rows = []
    for package in sorted({name.split("/")[0] for name in reasons}):
        of = [name.partition("/")[2] for name in equal if name.startswith(package + "/")]
        without = [name.partition("/")[2] for name in made if name.startswith(package + "/") and reasons[name]]
        rows.append(f"| {package} | {len(of)}: {', '.join(of)} | {', '.join(without) or 0} | {sum(name.startswith(package + '/') for name in skipped)} |")
    title = TITLE.format(version=onnxruntime.__version__, equal=len(equal), made=len(made), share=100 * len(equal) / max(1, len(made)),
                         transformers=transformers, raised=transformers - len(lacking), absent=", ".join(absent) or "none")
    return (title + "\n".join(rows) + "\n" + list_reasons("Refused, or not equal", {name: reasons[name] for name in made if reasons[name]})
            + list_reasons("Layers that are not raised", lacking) + list_reasons("Skipped", skipped))
