// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @rms_norm
func.func @rms_norm(%x: tensor<?x?x8xbf16>, %w: tensor<8xf32>) -> tensor<?x?x8xbf16> {
  // CHECK: hone.rms_norm %{{.*}}, %{{.*}} epsilon(9.99999997E-7) unit_offset : (tensor<?x?x8xbf16>, tensor<8xf32>) -> tensor<?x?x8xbf16>
  %0 = hone.rms_norm %x, %w epsilon(1.0e-6) unit_offset : (tensor<?x?x8xbf16>, tensor<8xf32>) -> tensor<?x?x8xbf16>
  // CHECK: hone.rms_norm %{{.*}}, %{{.*}} epsilon(0.000000e+00) : (tensor<?x?x8xbf16>
  %1 = hone.rms_norm %0, %w epsilon(0.0) : (tensor<?x?x8xbf16>, tensor<8xf32>) -> tensor<?x?x8xbf16>
  return %1 : tensor<?x?x8xbf16>
}
