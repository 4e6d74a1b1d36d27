# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a module with two experts of 16 channels: "gate", [32, 64], of random numbers, and "up", [32, 64], and "down", [128, 16], of 1 and -1, for which
two bits are enough."""

import random

draw = random.Random(6)
gate = [[round(draw.gauss(0, 1), 3) for _ in range(64)] for _ in range(32)]
up = [[draw.choice((-1.0, 1.0)) for _ in range(64)] for _ in range(32)]
down = [[draw.choice((-1.0, 1.0)) for _ in range(16)] for _ in range(128)]
for name, weight in (("gate", gate), ("up", up), ("down", down)):
    print(f"hone.param @{name} : tensor<{len(weight)}x{len(weight[0])}xf32> = dense<{weight}> : tensor<{len(weight)}x{len(weight[0])}xf32>")
print("""func.func @main(%x: tensor<?x64xf32>, %ids: tensor<?x1xi64>, %p: tensor<?x1xf32>) -> tensor<?x64xf32> {
  %gate = hone.get_param @gate : tensor<32x64xf32>
  %up = hone.get_param @up : tensor<32x64xf32>
  %down = hone.get_param @down : tensor<128x16xf32>
  %0 = hone.moe silu %x, experts(%ids, %p), up(%up), down(%down) gate(%gate)
    : (tensor<?x64xf32>, tensor<?x1xi64>, tensor<?x1xf32>, tensor<32x64xf32>, tensor<128x16xf32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}""")
