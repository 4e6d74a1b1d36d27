# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""law_points.py KIND RATE...: losses of two models under a P2 law, as points for `hone plan`."""

import json
import sys

kind, rates = sys.argv[1], [float(rate) for rate in sys.argv[2:]]
for parameters, dense in (2e7, 3.2), (8e7, 3.0):
    for rate in rates:
        for tokens in 1e5, 3e5, 1e6, 3e6, 1e7:
            loss = dense + rate**2 * (parameters / 1e7) ** -0.1 * ((tokens / 1e6) ** -0.5 + 1)
            print(json.dumps(dict(kind=kind, parameters=parameters, rate=rate, tokens=tokens, dense_loss=dense, loss=loss, step=tokens / 512)))
