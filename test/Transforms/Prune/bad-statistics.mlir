// Options and statistics that cannot be used: one error that says why, and nothing is written.

// RUN: not hone-opt %s -hone-prune-nm=method=guess 2>&1 | FileCheck %s --check-prefix=METHOD
// METHOD: error: unsupported method 'guess' to prune; supported: magnitude, wanda, sparsegpt
// RUN: not hone-opt %s -hone-prune-nm=method=wanda 2>&1 | FileCheck %s --check-prefix=NEEDED
// NEEDED: error: expected a file of statistics for method 'wanda'
// RUN: not hone-opt %s -hone-prune-nm="n=4 m=4" 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not hone-opt %s -hone-prune-nm="n=0 m=4" 2>&1 | FileCheck %s --check-prefix=PATTERN
// PATTERN: error: expected n of m inputs to be 1 to m - 1 of 2 to 128, but got {{[04]}} of 4

// RUN: not hone-opt %s -hone-quantize-weights=method=guess 2>&1 | FileCheck %s --check-prefix=ROUNDING
// ROUNDING: error: unsupported method 'guess' to quantize; supported: gptq, rtn, squeezellm, squeezellm-gptq
// RUN: not hone-opt %s -hone-quantize-weights=method=gptq 2>&1 | FileCheck %s --check-prefix=GPTQ
// GPTQ: error: expected a file of statistics for method 'gptq'
// RUN: not hone-opt %s -hone-quantize-weights=act-order=true 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: expected method 'gptq' for act-order and static-groups, but got 'rtn'
// RUN: not hone-opt %s -hone-quantize-weights="method=gptq statistics=a act-order=true" 2>&1 | FileCheck %s --check-prefix=STATIC
// STATIC: error: expected static-groups with act-order: the inputs of a group come one by one

// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.absent" 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: cannot open {{.*}}.absent: No such file or directory
// RUN: not hone-opt %s -hone-prune-nm="statistics=%s" 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: {{.*}}bad-statistics.mlir: {{.*}}
// RUN: %python %S/Inputs/statistics.py %t.other weight=0:4 < /dev/null
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" -o %t.out 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not hone-opt %s -hone-quantize-weights="method=gptq statistics=%t.other" -o %t.out 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not ls %t.out
// MODEL: error: {{.*}}.other: expected statistics of the model with the fingerprint {{[0-9a-f]+}}, but got those of none
// RUN: %python %S/Inputs/statistics.py %t.format --format=pt < /dev/null
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.format" 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: {{.*}}.format: expected the format to be 'hone-statistics', as 'hone calibrate' writes it, but got 'pt'
// RUN: %python %S/Inputs/statistics.py %t.version --version=2 < /dev/null
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.version" 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: {{.*}}.version: unsupported version '2' of statistics; supported: 1

// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.dropped weight=0:4 --drop=0.second_moment
// RUN: not hone-opt %s -hone-prune-nm="method=wanda statistics=%t.dropped" 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: error: {{.*}}.dropped: expected a tensor '0.second_moment', but there is none
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.size weight=0:8
// RUN: not hone-opt %s -hone-prune-nm="method=wanda statistics=%t.size" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: {{.*}}.size: expected '0.second_moment' to be f32 of [4, 4], but got f32 of [8, 8]
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.nan weight=0:4 --set=0.second_moment:nan
// RUN: not hone-opt %s -hone-prune-nm="method=sparsegpt statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not hone-opt %s -hone-prune-nm="method=wanda statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not hone-opt %s -hone-quantize-weights="method=gptq statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not hone-opt %s -hone-quantize-weights="statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not hone-opt %s -hone-choose-widths="bits-per-weight=100 statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: expected bits-per-weight to be more than 0 and at most 32, but got 100.00
// RUN: not hone-opt %s -hone-choose-widths="bits-per-weight=32 statistics=%t.nan" 2>&1 | FileCheck %s --check-prefix=NAN
// NAN: error: cannot use the statistics of the input of weight: expected the Hessian of inputs 0 and 0 to be finite, but got nan
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.negative weight=0:4 --set=0.second_moment:-1
// RUN: not hone-opt %s -hone-prune-nm="method=sparsegpt statistics=%t.negative" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: cannot use the statistics of the input of weight: expected the Hessian of input 0 to be 0 or more, but got -1

// A channel that is always zero is no error: its column becomes 0.
// RUN: not hone-opt %s -hone-prune-nm="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.dead weight=0:4 --without-input=1
// RUN: hone-opt %s -hone-prune-nm="n=3 m=4 method=sparsegpt statistics=%t.dead" | FileCheck %s --check-prefix=DEAD
// RUN: hone-opt %s -hone-quantize-weights="bits=8 method=gptq statistics=%t.dead" | FileCheck %s --check-prefix=DEAD-CODES
// DEAD: weight: "0x40000000{{........00000000................}}
// Codes fill the row's one group up to 64; the second one is that of 0.
// DEAD-CODES: weight: "0x40000000{{..80....}}
hone.param @weight : tensor<1x4xf32> = dense<[[1.0, 9.0, 2.0, 0.5]]> : tensor<1x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x1xf32> {
  %weight = hone.get_param @weight : tensor<1x4xf32>
  %0 = hone.linear %x, %weight : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  %1 = math.absf %0 : tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}
