// Kernels of experts read gate and up in one form: both get the same bits, although two are enough for up.

// RUN: %python %S/Inputs/experts.py > %t.mlir
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=6 bits=2,4 groups=64" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=6 bits=2,4 groups=64" -hone-quantize-weights="bits=4" -hone-pack-weights | FileCheck %s --check-prefix=PACKED

// CHECK-DAG: "gate gets [[FORM:[24] bits.*]], for a loss of {{[1-9]}}
// CHECK-DAG: "up gets [[FORM]], for a loss of {{.*}}
// CHECK-DAG: hone.param @gate : {{.*}} {hone.encoding = [[ENCODING:#hone[^}]*]]}
// CHECK-DAG: hone.param @up : {{.*}} {hone.encoding = [[ENCODING]]}
// PACKED: hone.moe {{.*}} tensor<32x64xf32, [[PANELS:#hrt.panels[^)]*]]>, tensor<128x16xf32, {{.*}}>, tensor<32x64xf32, [[PANELS]]>)
