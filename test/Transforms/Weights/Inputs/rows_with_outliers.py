# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a module with a product of "weight" [16, 32], of which each row has one element far from the others."""

rows = [[20.0 if column == row else ((7 * row + 5 * column) % 9 - 4) / 4 for column in range(32)] for row in range(16)]
print(f"hone.param @weight : tensor<16x32xf32> = dense<{rows}> : tensor<16x32xf32>")
print("""func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
  %weight = hone.get_param @weight : tensor<16x32xf32>
  %0 = hone.linear %x, %weight : (tensor<?x32xf32>, tensor<16x32xf32>) -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}""")
