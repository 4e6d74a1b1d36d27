// What quantization does with weights and statistics that are not as they should be.
// RUN: split-file %s %t && cd %t
// RUN: %python %hone_src/test/Transforms/Prune/Inputs/statistics.py other weight=0:6 < /dev/null

// Not a number: named by the pass that looks at elements. What is rounded when it is written is refused then, and nothing stays.
// RUN: not hone-opt not-a-number.mlir -hone-quantize-weights="statistics=other" 2>&1 | %python %hone_src/test/Transforms/Prune/Inputs/statistics.py nan weight=0:6
// RUN: not hone-opt not-a-number.mlir -hone-quantize-weights="method=gptq statistics=nan" 2>&1 | FileCheck not-a-number.mlir
// RUN: not hone-opt not-a-number.mlir -hone-quantize-weights="statistics=nan" 2>&1 | FileCheck not-a-number.mlir
// RUN: not hone-opt not-a-number.mlir -hone-choose-widths 2>&1 | FileCheck not-a-number.mlir
// RUN: not hone compile not-a-number.mlir --quantize=int4 -o a.hone --quiet 2>&1 | FileCheck not-a-number.mlir --check-prefix=WRITTEN
// RUN: not hone compile not-a-number.mlir --quantize=int4 -o a.hone --report=a.json 2>&1 | FileCheck not-a-number.mlir --check-prefix=WRITTEN
// RUN: not hone compile not-a-number.mlir --pass-pipeline=hone-quantize-weights{bits=4} -o a.hone --report=a.json 2>&1 | FileCheck not-a-number.mlir --check-prefix=LATE
// RUN: not ls a.hone a.json

// A group that does not divide the inputs: the last one is filled up with bytes that nothing reads, and error compensation knows its end.
// RUN: not hone-opt odd.mlir -hone-quantize-weights="statistics=other" 2>&1 | %python %hone_src/test/Transforms/Prune/Inputs/statistics.py odd weight=0:6
// RUN: hone-opt odd.mlir -hone-quantize-weights="bits=8 group=4 method=gptq statistics=odd" | FileCheck odd.mlir
// RUN: hone-opt odd.mlir -hone-quantize-weights="bits=8 group=4 method=gptq act-order=true static-groups=true statistics=odd" | FileCheck odd.mlir
// RUN: not hone-opt odd.mlir -hone-quantize-weights="bits=4 group=3" 2>&1 | FileCheck odd.mlir --check-prefix=BYTES

// Inputs that never came: their column is 0, whatever the method; of all inputs dead nothing is left, and nothing fails.
// RUN: not hone-opt odd.mlir -hone-quantize-weights="statistics=other" 2>&1 | %python %hone_src/test/Transforms/Prune/Inputs/statistics.py dead weight=0:6 --without-input=0 --without-input=1 --without-input=2 --without-input=3 --without-input=4 --without-input=5
// RUN: hone-opt odd.mlir -hone-quantize-weights="bits=8 group=4 method=gptq statistics=dead" -remarks-filter=hone-quantize-weights 2>&1 | FileCheck odd.mlir --check-prefix=DEAD
// RUN: hone-opt odd.mlir -hone-choose-widths="bits-per-weight=20 statistics=dead" | FileCheck odd.mlir --check-prefix=CHOSEN

//--- not-a-number.mlir
// CHECK: error: expected the elements of weight to be finite, but element [1, 2] is nan
// WRITTEN: {{^}}hone: error: not-a-number.mlir:{{[0-9:]+}}: expected the elements of weight to be finite, but element [1, 2] is nan{{$}}
// WRITTEN-NOT: {{.}}
// LATE: {{^}}hone: error: not-a-number.mlir:{{[0-9:]+}}: cannot quantize row 1: its elements are not all finite, or too large for scales of {{.*$}}
// LATE-NOT: {{.}}
hone.param @weight : tensor<2x6xf32> = dense<[[1.0, 9.0, 2.0, 0.5, 1.0, 1.0], [1.0, 2.0, 0x7FC00000, 3.0, 1.0, 1.0]]> : tensor<2x6xf32>
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x2xf32> {
  %weight = hone.get_param @weight : tensor<2x6xf32>
  %0 = hone.linear %x, %weight : (tensor<?x6xf32>, tensor<2x6xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

//--- odd.mlir
// CHECK: hone.param @weight : tensor<1x6xf32, #hone.affine<bits = 8, group = 4, {{.*}}>> = {scales = dense_resource<{{.*}}> : tensor<1x2xf16>, values = dense_resource<{{.*}}> : tensor<1x8xi8>}
// CHECK: weight{{.*}}: "0x40000000{{............}}0000"
// BYTES: error: expected the codes of a group to fill whole bytes, but got a group of 3
// DEAD: [Passed] Quantized {{.*}}"weight is stored in 8 bits an element, with a relative error of 0.0000 of its outputs"
// DEAD: weight{{.*}}: "0x400000008080808080800000"
// CHOSEN: hone.encoding = #hone.affine<
hone.param @weight : tensor<1x6xf32> = dense<[[1.0, 9.0, 2.0, 0.5, -3.0, 4.0]]> : tensor<1x6xf32>
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x1xf32> {
  %weight = hone.get_param @weight : tensor<1x6xf32>
  %0 = hone.linear %x, %weight : (tensor<?x6xf32>, tensor<1x6xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
