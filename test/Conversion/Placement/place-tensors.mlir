// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-place-tensors),canonicalize,cse)' | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-place-tensors))' --remarks-filter=hone-place-tensors --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: Remark="linalg.fill runs on the host: it makes few integers of the host's"
// REMARK-DAG: Remark="the host waits for a tensor of the device"

#plain = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>

// Inputs are read on the device, and the output is made there.
// CHECK-LABEL: @elementwise
// CHECK: hrt.input %{{.*}}[0] : memref<?xf32, #gpu.address_space<global>>
// CHECK-NOT: hrt.upload
// CHECK: hrt.output %{{.*}}[0] (%{{.*}}) : memref<?xf32, #gpu.address_space<global>>
func.func @elementwise(%call: !hrt.call) attributes {hrt.entry} {
  %m = hrt.input %call[0] : memref<?xf32>
  %x = bufferization.to_tensor %m restrict : memref<?xf32> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %init = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#plain, #plain], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %out = hrt.output %call[0](%n) : memref<?xf32>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// What a check needs of the host's integers is computed where they are: nobody waits.
// CHECK-LABEL: @check
// CHECK: hrt.input %{{.*}}[0] : memref<?xi64>{{$}}
// CHECK-NOT: hrt.fetch
// CHECK: hrt.check
func.func @check(%call: !hrt.call) attributes {hrt.entry} {
  %m = hrt.input %call[0] : memref<?xi64>
  %x = bufferization.to_tensor %m restrict : memref<?xi64> to tensor<?xi64>
  %true = arith.constant true
  %zero = arith.constant 0 : i64
  %init = tensor.empty() : tensor<i1>
  %yes = linalg.fill ins(%true : i1) outs(%init : tensor<i1>) -> tensor<i1>
  %inside = linalg.generic {indexing_maps = [#plain, #all], iterator_types = ["reduction"]}
      ins(%x : tensor<?xi64>) outs(%yes : tensor<i1>) {
  ^bb0(%a: i64, %b: i1):
    %c = arith.cmpi sge, %a, %zero : i64
    %s = arith.andi %b, %c : i1
    linalg.yield %s : i1
  } -> tensor<i1>
  %ok = tensor.extract %inside[] : tensor<i1>
  hrt.check %ok, "expected indices inside their dimension"
  return
}

// Positions of tokens follow from sizes. The device needs them, and the host has its own for a check: nobody waits.
// CHECK-LABEL: @positions
// CHECK-COUNT-2: arith.addi
// CHECK-NOT: hrt.fetch
// CHECK: hrt.check
func.func @positions(%call: !hrt.call) attributes {hrt.entry} {
  %m = hrt.input %call[0] : memref<?xi64>
  %c0 = arith.constant 0 : index
  %n = memref.dim %m, %c0 : memref<?xi64>
  %true = arith.constant true
  %limit = arith.constant 512 : i64
  %empty = tensor.empty(%n) : tensor<?xi64>
  %positions = linalg.generic {indexing_maps = [#plain], iterator_types = ["parallel"]} outs(%empty : tensor<?xi64>) {
  ^bb0(%a: i64):
    %at = linalg.index 0 : index
    %i = arith.index_cast %at : index to i64
    %next = arith.addi %i, %limit : i64
    linalg.yield %next : i64
  } -> tensor<?xi64>
  %init = tensor.empty() : tensor<i1>
  %yes = linalg.fill ins(%true : i1) outs(%init : tensor<i1>) -> tensor<i1>
  %inside = linalg.generic {indexing_maps = [#plain, #all], iterator_types = ["reduction"]}
      ins(%positions : tensor<?xi64>) outs(%yes : tensor<i1>) {
  ^bb0(%a: i64, %b: i1):
    %c = arith.cmpi slt, %a, %limit : i64
    %s = arith.andi %b, %c : i1
    linalg.yield %s : i1
  } -> tensor<i1>
  %ok = tensor.extract %inside[] : tensor<i1>
  hrt.check %ok, "expected indices inside their dimension"
  %out = hrt.output %call[0](%n) : memref<?xi64>
  bufferization.materialize_in_destination %positions in restrict writable %out : (tensor<?xi64>, memref<?xi64>) -> ()
  return
}

// Of what the device computes, one element is fetched, and not its tensor.
// CHECK-LABEL: @fetch
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}] [1] [1] : tensor<?xf32> to tensor<f32>
// CHECK: hrt.fetch %{{.*}}, %[[SLICE]] into %{{.*}} : tensor<f32>
// CHECK: tensor.extract %{{.*}}[] : tensor<f32>
func.func @fetch(%call: !hrt.call, %i: index, %n: index) attributes {hrt.entry} {
  %one = arith.constant 1.0 : f32
  %init = tensor.empty(%n) : tensor<?xf32>
  %x = linalg.fill ins(%one : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %e = tensor.extract %x[%i] : tensor<?xf32>
  %ok = arith.cmpf oeq, %e, %one : f32
  hrt.check %ok, "expected one"
  return
}

// What a branch gives is an input or something new: buffers of one type, as neither is in a memory space yet.
// CHECK-LABEL: @branch
// CHECK: %[[INPUT:.*]] = hrt.input %{{.*}}[0] : memref<?xf32, #gpu.address_space<global>>
// CHECK: %[[CAST:.*]] = memref.memory_space_cast %[[INPUT]] : memref<?xf32, #gpu.address_space<global>> to memref<?xf32>
// CHECK: %[[X:.*]] = bufferization.to_tensor %[[CAST]]
// CHECK: scf.if
// CHECK: scf.yield %[[X]]
func.func @branch(%call: !hrt.call, %n: index, %first: i1) attributes {hrt.entry} {
  %one = arith.constant 1.0 : f32
  %memory = hrt.input %call[0] : memref<?xf32>
  %x = bufferization.to_tensor %memory restrict : memref<?xf32> to tensor<?xf32>
  %y = scf.if %first -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    %init = tensor.empty(%n) : tensor<?xf32>
    %fill = linalg.fill ins(%one : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %fill : tensor<?xf32>
  }
  %out = hrt.output %call[0] (%n) : memref<?xf32>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
