func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %columns = tensor.empty(%n) : tensor<?xf32>
  %none = linalg.fill ins(%zero : f32) outs(%columns : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                          iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%none : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  %rows = tensor.empty(%m) : tensor<?xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                            iterator_types = ["parallel", "reduction"]}
      ins(%x, %sums : tensor<?x?xf32>, tensor<?xf32>) outs(%nothing : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  return %result : tensor<?xf32>
}
