// RUN: hone-opt %s --hone-bound-lookups --split-input-file | FileCheck %s

// Elements as they come, moved, and with a constant added; the smallest table counts.
// CHECK-LABEL: func.func @elements
// CHECK-SAME: %arg0: tensor<?x?xi64> {hone.rows = array<i64: 9, 0>}
// CHECK-SAME: %arg1: tensor<?x?xi32> {hone.rows = array<i64: 9, 2>}
// CHECK-NOT: hone.limits
func.func @elements(%ids: tensor<?x?xi64>, %shifted: tensor<?x?xi32>, %small: tensor<9x4xf32>, %large: tensor<30x4xf32>) -> (tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) {
  %0 = hone.embedding %ids, %large : (tensor<?x?xi64>, tensor<30x4xf32>) -> tensor<?x?x4xf32>
  %transposed = "onnx.Transpose"(%ids) {perm = array<i64: 1, 0>} : (tensor<?x?xi64>) -> tensor<?x?xi64>
  %1 = "onnx.Gather"(%small, %transposed) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  %two = "onnx.Constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %sum = "onnx.Add"(%two, %shifted) : (tensor<i32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %2 = hone.embedding %sum, %small : (tensor<?x?xi32>, tensor<9x4xf32>) -> tensor<?x?x4xf32>
  return %0, %1, %2 : tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>
}

// -----

// Numbers that something is computed of are none of the caller's.
// CHECK-LABEL: func.func @computed
// CHECK-NOT: hone.rows
func.func @computed(%ids: tensor<?xi64>, %table: tensor<9x4xf32>) -> tensor<?x4xf32> {
  %last = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %0 = "onnx.Min"(%ids, %last) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %1 = "onnx.Gather"(%table, %0) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Positions after those of the state, without padding, and with 2 rows that are for nothing.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: hone.limits = [{most = 7 : i64, sizes = ["hone.kv_length", "sequence"], table = "table"}]
hone.state @kv []
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
func.func @forward(%tokens: tensor<?x?xi64> {onnx.dims = ["batch", "sequence"]}, %state: !hone.kv<@kv>) -> (tensor<?x?x4xf32>, !hone.kv<@kv>) {
  %c0 = arith.constant 0 : index
  %table = hone.get_param @table : tensor<9x4xf32>
  %length = hone.kv_length %state : !hone.kv<@kv>
  %long = arith.index_cast %length : index to i64
  %held = tensor.from_elements %long : tensor<i64>
  %batch = tensor.dim %tokens, %c0 : tensor<?x?xi64>
  %padding = tensor.generate %batch {
  ^bb0(%i: index):
    %one = hone.kv_padding %state[%i] : !hone.kv<@kv>
    %count = arith.index_cast %one : index to i64
    tensor.yield %count : i64
  } : tensor<?xi64>
  %shape = "onnx.Shape"(%tokens) : (tensor<?x?xi64>) -> tensor<2xi64>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %step = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %fresh = "onnx.Gather"(%shape, %step) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %end = "onnx.Add"(%held, %fresh) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %places = "onnx.Range"(%held, %end, %step) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %column = "onnx.Unsqueeze"(%padding, %axes) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %after = "onnx.Sub"(%places, %column) : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
  %positions = "onnx.Max"(%after, %zero) : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
  %rows = "onnx.Add"(%positions, %two) : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
  %x = hone.embedding %rows, %table : (tensor<?x?xi64>, tensor<9x4xf32>) -> tensor<?x?x4xf32>
  return %x, %state : tensor<?x?x4xf32>, !hone.kv<@kv>
}

// -----

// Sizes of inputs, without a state; a difference of sizes says nothing.
// CHECK-LABEL: func.func @sizes
// CHECK-SAME: hone.limits = [{most = 9 : i64, sizes = ["past", "sequence"], table = "a table"}]
func.func @sizes(%ids: tensor<?xi64> {onnx.dims = ["sequence"]}, %past: tensor<?x4xf32> {onnx.dims = ["past", ""]}, %table: tensor<9x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %first = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Shape"(%ids) : (tensor<?xi64>) -> tensor<1xi64>
  %fresh = "onnx.Squeeze"(%0, %first) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %1 = "onnx.Shape"(%past) : (tensor<?x4xf32>) -> tensor<2xi64>
  %held = "onnx.Gather"(%1, %zero) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %end = "onnx.Add"(%held, %fresh) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %places = "onnx.Range"(%held, %end, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %x = "onnx.Gather"(%table, %places) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  %less = "onnx.Sub"(%fresh, %held) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = "onnx.Range"(%zero, %less, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %y = "onnx.Gather"(%table, %2) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %x, %y : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Numbers of rows that are cut to as many as an input has, and a table that is: their sums have no shape with fewer.
// CHECK-LABEL: func.func @cut_numbers
// CHECK-SAME: hone.limits = [{most = 9 : i64, sizes = ["sequence"], table = "table"}]
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
hone.param @numbers : tensor<1x9xi64> = dense<1> : tensor<1x9xi64>
func.func @cut_numbers(%x: tensor<?x?x4xf32> {onnx.dims = ["batch", "sequence", ""]}) -> tensor<?x?x4xf32> {
  %table = hone.get_param @table : tensor<9x4xf32>
  %numbers = hone.get_param @numbers : tensor<1x9xi64>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = "onnx.Shape"(%x) {start = 1 : i64, end = 2 : i64} : (tensor<?x?x4xf32>) -> tensor<1xi64>
  %cut = "onnx.Slice"(%numbers, %zero, %end, %one, %one) : (tensor<1x9xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?xi64>
  %rows = hone.embedding %cut, %table : (tensor<1x?xi64>, tensor<9x4xf32>) -> tensor<1x?x4xf32>
  %sum = "onnx.Add"(%x, %rows) : (tensor<?x?x4xf32>, tensor<1x?x4xf32>) -> tensor<?x?x4xf32>
  return %sum : tensor<?x?x4xf32>
}

// -----

// The first 2 rows are for nothing.
// CHECK-LABEL: func.func @cut_table
// CHECK-SAME: hone.limits = [{most = 7 : i64, sizes = ["sequence"], table = "table"}]
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
func.func @cut_table(%x: tensor<?x?x4xf32> {onnx.dims = ["batch", "sequence", ""]}) -> tensor<?x?x4xf32> {
  %table = hone.get_param @table : tensor<9x4xf32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %size = "onnx.Shape"(%x) {start = 1 : i64, end = 2 : i64} : (tensor<?x?x4xf32>) -> tensor<1xi64>
  %end = "onnx.Add"(%size, %two) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %rows = "onnx.Slice"(%table, %two, %end, %zero) : (tensor<9x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %sum = "onnx.Add"(%x, %rows) : (tensor<?x?x4xf32>, tensor<?x4xf32>) -> tensor<?x?x4xf32>
  return %sum : tensor<?x?x4xf32>
}

// -----

// Positions that are repeated for each sequence of a batch.
// CHECK-LABEL: func.func @repeated_positions
// CHECK-SAME: hone.limits = [{most = 9 : i64, sizes = ["sequence"], table = "table"}]
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
func.func @repeated_positions(%x: tensor<?x?xi64> {onnx.dims = ["batch", "sequence"]}) -> tensor<?x?x4xf32> {
  %table = hone.get_param @table : tensor<9x4xf32>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %ones = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %shape = "onnx.Shape"(%x) : (tensor<?x?xi64>) -> tensor<2xi64>
  %batch = "onnx.Gather"(%shape, %axis) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %length = "onnx.Gather"(%shape, %one) {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %positions = "onnx.Range"(%zero, %length, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %row = "onnx.Unsqueeze"(%positions, %axis) : (tensor<?xi64>, tensor<1xi64>) -> tensor<1x?xi64>
  %repeats = "onnx.Concat"(%batch, %ones) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %all = "onnx.Tile"(%row, %repeats) : (tensor<1x?xi64>, tensor<2xi64>) -> tensor<?x?xi64>
  %rows = "onnx.Gather"(%table, %all) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  return %rows : tensor<?x?x4xf32>
}

// -----

// What is cut short has a meaning where nothing else of that size meets it, and where one row is left.
// CHECK-LABEL: func.func @cut_short
// CHECK-NOT: hone.limits
func.func @cut_short(%x: tensor<?x4xf32> {onnx.dims = ["sequence", ""]}, %table: tensor<9x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<1xi64>} : () -> tensor<1xi64>
  %size = "onnx.Shape"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x4xf32>) -> tensor<1xi64>
  %rows = "onnx.Slice"(%table, %zero, %size, %zero) : (tensor<9x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %alone = "onnx.Add"(%rows, %one) : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %end = "onnx.Add"(%size, %eight) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %last = "onnx.Slice"(%table, %eight, %end, %zero) : (tensor<9x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %sum = "onnx.Add"(%x, %last) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %alone, %sum : tensor<?x4xf32>, tensor<?x4xf32>
}
