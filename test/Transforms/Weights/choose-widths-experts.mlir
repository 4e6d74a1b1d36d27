// Kernels of experts read gate and up in one form: both get the same bits, although two are enough for up.

// RUN: %python %S/Inputs/experts.py > %t.mlir
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=6 bits=2,4 groups=64" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s
// RUN: hone-opt %t.mlir -hone-choose-widths="bits-per-weight=6 bits=2,4 groups=64" -hone-quantize-weights="bits=4" -hone-pack-weights | FileCheck %s --check-prefix=PACKED

// CHECK-DAG: "gate gets [[FORM:[24] bits.*]], for a loss of {{[1-9]}}
// CHECK-DAG: "up gets [[FORM]], for a loss of {{.*}}
// CHECK-DAG: hone.param @gate : {{.*}} {hone.encoding = [[ENCODING:#hone[^}]*]]}
// CHECK-DAG: hone.param @up : {{.*}} {hone.encoding = [[ENCODING]]}
// PACKED: hone.moe {{.*}} tensor<32x64xf32, [[PANELS:#hrt.panels[^)]*]]>, tensor<128x16xf32, {{.*}}>, tensor<32x64xf32, [[PANELS]]>)

// Experts count by what was measured of each, and by how many rows chose it: two that are @one, and read what it reads, lose what it
// loses; and so does one of them if nobody chose the other.
// RUN: %python %S/../Prune/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %S/quantize-weights-experts.mlir -hone-choose-widths="statistics=%t.other" 2> %t.message
// RUN: %python %S/../Prune/Inputs/statistics.py %t.same one=0:8 two[0]=0:8 two[1]=0:8 down[0]=1:4 down[1]=1:4 < %t.message
// RUN: %python %S/../Prune/Inputs/statistics.py %t.missing one=0:8 two[0]=0:8 two[1]=2:8 down[0]=1:4 down[1]=1:4 --set=2.rows:0 < %t.message
// RUN: hone-opt %S/quantize-weights-experts.mlir -hone-choose-widths="bits-per-weight=16 bits=3 groups=0 statistics=%t.same" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: hone-opt %S/quantize-weights-experts.mlir -hone-choose-widths="bits-per-weight=16 bits=3 groups=0 statistics=%t.missing" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: hone-opt %S/quantize-weights-experts.mlir -hone-choose-widths="bits-per-weight=16 bits=3 groups=0 error-compensation=true statistics=%t.same" -remarks-filter=hone-choose-widths 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS-DAG: "one gets 3 bits, for a loss of [[LOSS:[1-9].*E-[0-9]+]]"
// ROWS-DAG: "two gets 3 bits, for a loss of [[LOSS]]"
