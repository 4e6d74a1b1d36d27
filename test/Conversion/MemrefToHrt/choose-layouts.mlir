// RUN: hone-opt %s --hone-choose-layouts | FileCheck %s
// RUN: hone-opt %s --hone-choose-layouts --remarks-filter=hone-choose-layouts --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

!map = memref<?x32x?x8xf32>
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
#channels = affine_map<(a, b, c, d) -> (a, b, 0, 0)>
#all = ["parallel", "parallel", "parallel", "parallel"]

// Loops are no hindrance, nor are factors of channels.
// REMARK-DAG: [Passed] Layout | Category:hone-choose-layouts | Remark="channels lie after positions"
// CHECK-LABEL: func.func @between_kernels(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x32x?x8xf32>, %[[Y:[a-z0-9]+]]: memref<?x32x?x8xf32>
// CHECK: %[[A:.*]] = memref.alloc(%[[N:.*]], %[[H:[a-z0-9]+]]) : memref<?x?x8x32xf32>
// CHECK: %[[VIEW:.*]] = memref.transpose %[[A]] (d0, d1, d2, d3) -> (d0, d3, d1, d2) : {{.*}} strided<[?, 1, 256, 32]>>
// CHECK: hrt.kernel "hone.pool.f32" %{{.*}} ins(%[[X]] : memref<?x32x?x8xf32>) outs(%[[VIEW]] :
// CHECK: memref.alloc(%[[N]], %[[H]]) : memref<?x?x8x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[VIEW]], %{{.*}} : memref<?x32x?x8xf32, strided<[?, 1, 256, 32]>>, memref<?x32x1x1xf32>)
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} outs(%[[Y]] :
func.func @between_kernels(%call: !hrt.call, %x: !map, %y: !map, %gate: memref<?x32x1x1xf32>, %n: index,
                           %h: index) {
  %a = memref.alloc(%n, %h) : !map
  hrt.kernel "hone.pool.f32" %call ins(%x : !map) outs(%a : !map)
  %b = memref.alloc(%n, %h) : !map
  linalg.generic {indexing_maps = [#same, #channels, #same], iterator_types = #all}
      ins(%a, %gate : !map, memref<?x32x1x1xf32>) outs(%b : !map) {
  ^bb0(%in: f32, %factor: f32, %out: f32):
    %0 = arith.mulf %in, %factor : f32
    linalg.yield %0 : f32
  }
  hrt.kernel "hone.pool.f32" %call ins(%b : !map) outs(%y : !map)
  return
}

// Parts are of the same layout.
// CHECK-LABEL: func.func @part(
// CHECK: %[[A:.*]] = memref.alloc() : memref<1x4x4x32xf32>
// CHECK: %[[VIEW:.*]] = memref.transpose %[[A]]
// CHECK: %[[PART:.*]] = memref.subview %[[VIEW]][0, 16, 0, 0] {{.*}} to memref<1x16x4x4xf32, strided<[512, 1, 128, 32], offset: 16>>
// CHECK: outs(%[[PART]] :
func.func @part(%call: !hrt.call, %x: memref<1x16x4x4xf32>, %y: memref<1x32x4x4xf32>) {
  %a = memref.alloc() : memref<1x32x4x4xf32>
  %part = memref.subview %a[0, 16, 0, 0] [1, 16, 4, 4] [1, 1, 1, 1]
      : memref<1x32x4x4xf32> to memref<1x16x4x4xf32, strided<[512, 16, 4, 1], offset: 256>>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<1x16x4x4xf32>)
      outs(%part : memref<1x16x4x4xf32, strided<[512, 16, 4, 1], offset: 256>>)
  hrt.kernel "hone.pool.f32" %call ins(%a : memref<1x32x4x4xf32>) outs(%y : memref<1x32x4x4xf32>)
  return
}

// Sequences have channels too.
// CHECK-LABEL: func.func @sequence(
// CHECK: memref.alloc() : memref<1x100x16xf32>
func.func @sequence(%call: !hrt.call, %x: memref<1x16x100xf32>) {
  %a = memref.alloc() : memref<1x16x100xf32>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<1x16x100xf32>) outs(%a : memref<1x16x100xf32>)
  return
}

// Means over all positions have dimensions of size 1 between channels and positions.
// CHECK-LABEL: func.func @mean(
// CHECK: %[[VIEW:.*]] = memref.transpose
// CHECK: memref.expand_shape %[[VIEW]] {{.*}} into memref<?x32x1x1x?x8xf32, strided<[?, 1, 1, 1, 256, 32]>>
#windows = affine_map<(n, c, a, b, h, w) -> (n, c, a, b, h, w)>
#means = affine_map<(n, c, a, b, h, w) -> (n, c, a, b)>
func.func @mean(%call: !hrt.call, %x: !map, %y: memref<?x32x1x1xf32>, %n: index, %h: index) {
  %a = memref.alloc(%n, %h) : !map
  hrt.kernel "hone.pool.f32" %call ins(%x : !map) outs(%a : !map)
  %windows = memref.expand_shape %a [[0], [1, 2, 3], [4], [5]] output_shape [%n, 32, 1, 1, %h, 8]
      : !map into memref<?x32x1x1x?x8xf32>
  linalg.generic {indexing_maps = [#windows, #means],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%windows : memref<?x32x1x1x?x8xf32>) outs(%y : memref<?x32x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}

// Transpositions copy in any case.
// CHECK-LABEL: func.func @transposed(
// CHECK: %[[VIEW:.*]] = memref.transpose
// CHECK: linalg.transpose ins(%[[VIEW]] :
func.func @transposed(%call: !hrt.call, %x: memref<1x32x4x5xf32>, %y: memref<1x4x5x32xf32>) {
  %a = memref.alloc() : memref<1x32x4x5xf32>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<1x32x4x5xf32>) outs(%a : memref<1x32x4x5xf32>)
  linalg.transpose ins(%a : memref<1x32x4x5xf32>) outs(%y : memref<1x4x5x32xf32>) permutation = [0, 2, 3, 1]
  return
}

// A loop would go over two layouts.
// REMARK-DAG: [Missed] Layout | Category:hone-choose-layouts | Remark="channels stay before positions: {{.*}} buffer that keeps its layout"
// CHECK-LABEL: func.func @loop_with_input(
// CHECK: memref.alloc() : memref<1x32x4x4xf32>
func.func @loop_with_input(%call: !hrt.call, %x: memref<1x32x4x4xf32>, %y: memref<1x32x4x4xf32>) {
  %a = memref.alloc() : memref<1x32x4x4xf32>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<1x32x4x4xf32>) outs(%a : memref<1x32x4x4xf32>)
  linalg.generic {indexing_maps = [#same, #same], iterator_types = #all}
      ins(%a : memref<1x32x4x4xf32>) outs(%y : memref<1x32x4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Its rows are taken as one, few channels fill no vectors, and no convolution has this one.
// REMARK-DAG: [Missed] Layout | {{.*}} Remark="channels stay before positions: something other than kernels and loops uses it"
// CHECK-LABEL: func.func @others(
// CHECK: memref.alloc() : memref<1x32x4x4xf32>
// CHECK: memref.alloc() : memref<1x8x4x4xf32>
// CHECK: memref.alloc() : memref<1x32x4x4xf32>
func.func @others(%call: !hrt.call, %x: memref<1x32x4x4xf32>, %y: memref<1x8x4x4xf32>) -> memref<1x512xf32> {
  %a = memref.alloc() : memref<1x32x4x4xf32>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<1x32x4x4xf32>) outs(%a : memref<1x32x4x4xf32>)
  %rows = memref.collapse_shape %a [[0], [1, 2, 3]] : memref<1x32x4x4xf32> into memref<1x512xf32>
  %b = memref.alloc() : memref<1x8x4x4xf32>
  hrt.kernel "hone.pool.f32" %call ins(%y : memref<1x8x4x4xf32>) outs(%b : memref<1x8x4x4xf32>)
  %c = memref.alloc() : memref<1x32x4x4xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<1x32x4x4xf32>)
  return %rows : memref<1x512xf32>
}
