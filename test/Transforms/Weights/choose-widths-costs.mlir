// Two weights of the same elements that read the same: the one whose errors cost the model more gets more bits.
// The fingerprint of this module is in the message that refuses statistics of another one.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %s -hone-choose-widths="statistics=%t.other" 2> %t.message
// RUN: %python %S/../Prune/Inputs/statistics.py %t.first first=0:32 second=0:32 --cost=first:0.5 --cost=second:0.02 < %t.message
// RUN: %python %S/../Prune/Inputs/statistics.py %t.second first=0:32 second=0:32 --cost=first:0.02 --cost=second:0.5 < %t.message
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=6 bits=2,8 groups=32 statistics=%t.first" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=6 bits=2,8 groups=32 statistics=%t.second" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=SECOND

// FIRST-DAG: "first gets 8 bits, for a loss of {{[1-9]\.[0-9]+E-[0-9]+}}"
// FIRST-DAG: "second gets 2 bits in groups of 32, for a loss of {{[1-9]\.[0-9]+E-[0-9]+}}"
// SECOND-DAG: "first gets 2 bits in groups of 32, for a loss of {{[1-9]\.[0-9]+E-[0-9]+}}"
// SECOND-DAG: "second gets 8 bits, for a loss of {{[1-9]\.[0-9]+E-[0-9]+}}"

// What later columns compensate is no loss: with error compensation, less is lost by the same form, and as much every time.
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=3 bits=2 groups=32 statistics=%t.first" -remarks-filter=hone-choose-widths 2>&1 | %python %S/Inputs/sum_losses.py > %t.losses
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=3 bits=2 groups=32 error-compensation=true statistics=%t.first" -remarks-filter=hone-choose-widths 2>&1 | %python %S/Inputs/sum_losses.py > %t.compensated
// RUN: hone-opt %s -hone-choose-widths="bits-per-weight=3 bits=2 groups=32 error-compensation=true statistics=%t.first" -remarks-filter=hone-choose-widths 2>&1 | %python %S/Inputs/sum_losses.py | cmp %t.compensated -
// RUN: %python -c "import sys; a, b = (float(open(f).read()) for f in sys.argv[1:]); assert 0 < a < 0.9 * b, (a, b)" %t.compensated %t.losses

// Where costs are known, they are those of all weights.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.one first=0:32 second=0:32 --cost=first:0.5 < %t.message
// RUN: not hone-opt %s -hone-choose-widths="statistics=%t.one" 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: {{.*}}.one: expected a tensor 'cost of second', but there is none
hone.param @first : tensor<2x32xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0, 1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125,
   -0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0, 0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5],
  [1.0, -0.5, 0.75, -1.75, 0.5, 1.5, -0.25, 1.0, -1.25, 0.5, 1.0, 0.75, -0.5, 2.0, 1.0, -0.125,
   0.75, 1.5, -0.25, 1.0, 1.25, -0.5, 0.5, -1.0, 2.0, -1.0, 0.5, 0.25, -0.75, 1.0, 1.75, 0.3]]> : tensor<2x32xf32>
hone.param @second : tensor<2x32xf32> = dense<[
  [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0, 1.5, 0.25, -0.75, 1.0, 2.0, -1.0, 0.5, 0.125,
   -0.5, 1.75, 0.5, 0.25, 1.0, 0.75, -1.5, 1.0, 0.125, 1.0, -2.0, 0.5, -1.0, 0.25, 1.25, 0.5],
  [1.0, -0.5, 0.75, -1.75, 0.5, 1.5, -0.25, 1.0, -1.25, 0.5, 1.0, 0.75, -0.5, 2.0, 1.0, -0.125,
   0.75, 1.5, -0.25, 1.0, 1.25, -0.5, 0.5, -1.0, 2.0, -1.0, 0.5, 0.25, -0.75, 1.0, 1.75, 0.3]]> : tensor<2x32xf32>
func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %first = hone.get_param @first : tensor<2x32xf32>
  %second = hone.get_param @second : tensor<2x32xf32>
  %0 = hone.linear %x, %first : (tensor<?x32xf32>, tensor<2x32xf32>) -> tensor<?x2xf32>
  %1 = hone.linear %x, %second : (tensor<?x32xf32>, tensor<2x32xf32>) -> tensor<?x2xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?x2xf32>
}
