// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @moe_c1_row(%x: tensor<f32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 1, but got 0}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<f32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<f32>
  return
}

// -----

func.func @moe_c1_inner_dim(%x: tensor<?x3xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the last dimension of x to be 4, but got 3}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x3xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @moe_c2_ids(%x: tensor<3x4xf32>, %i: tensor<2x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the leading dimensions of expert_ids to be [3], but got the shape [2x2]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<3x4xf32>, tensor<2x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @moe_c2_ids_rank(%x: tensor<?x4xf32>, %i: tensor<?xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the leading dimensions of expert_ids to be [?], but got the shape [?]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c2_weights(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x3xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the shape of expert_weights to be [?x2], but got [?x3]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x3xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c3_dynamic(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<?x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected up and down to have static shapes, but got 'tensor<?x4xf32>' and 'tensor<32x6xf32>'}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<?x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c3_gate(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %g: tensor<56x4xf32>) {
  // expected-error @below {{expected the shape of gate to be [48x4], but got [56x4]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) gate(%g)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<56x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c4_none(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<0x4xf32>, %d: tensor<0x6xf32>) {
  // expected-error @below {{expected the rows of down to be a multiple of 4 and at least that, but got 0}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<0x4xf32>, tensor<0x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c4_part(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<30x6xf32>) {
  // expected-error @below {{expected the rows of down to be a multiple of 4 and at least that, but got 30}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<30x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c4_experts(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<28x6xf32>) {
  // expected-error @below {{expected the rows of up to be 42, but got 48}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<28x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c4_down(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x7xf32>) {
  // expected-error @below {{expected the rows of up to be 56, but got 48}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x7xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c4_fused(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the rows of up to be 96, but got 48}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) fused halves
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c5_up_bias(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %b: tensor<8x5xf32>) {
  // expected-error @below {{expected the shape of up_bias to be [8x6], but got [8x5]}}
  hone.moe relu %x, experts(%i, %p), up(%u, %b), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<8x5xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c5_down_bias(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @below {{expected the shape of down_bias to be [8x4], but got [8x6]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d, %b)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<8x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c5_gate_bias(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %g: tensor<48x4xf32>, %b: tensor<8x5xf32>) {
  // expected-error @below {{expected the shape of gate_bias to be [8x6], but got [8x5]}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) gate(%g) gate_bias(%b)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<48x4xf32>, tensor<8x5xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c5_gate_bias_alone(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @below {{expected gate_bias to be absent without gate}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) gate_bias(%b)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<8x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c6_up(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf16>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected the elements of up to be 'f32', but got 'f16'}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf16>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c6_gate(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf32>, %g: tensor<48x4xf16>) {
  // expected-error @below {{expected the elements of gate to be 'f32', but got 'f16'}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) gate(%g)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf32>, tensor<48x4xf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c6_down(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<48x4xf32>, %d: tensor<32x6xf16>) {
  // expected-error @below {{expected the elements of down to be 'f32', but got 'f16'}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<48x4xf32>, tensor<32x6xf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c7_gate(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: tensor<32x6xf32>, %g: tensor<96x4xf32>) {
  // expected-error @below {{expected fused to be absent with gate}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) gate(%g) fused halves
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<96x4xf32>, tensor<32x6xf32>, tensor<96x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c8_activation(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected alpha, offset and limit to be given together, with silu and a gate}}
  hone.moe relu %x, experts(%i, %p), up(%u), down(%d) fused halves swiglu(1.0, 1.0, 7.0)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<96x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c8_together(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected alpha, offset and limit to be given together, with silu and a gate}}
  hone.moe silu %x, experts(%i, %p), up(%u), down(%d) fused halves {limit = 7.0 : f32}
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<96x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c8_finite(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected alpha and offset to be finite, but got 0x7F800000 : f32 and 1.000000e+00 : f32}}
  hone.moe silu %x, experts(%i, %p), up(%u), down(%d) fused halves swiglu(0x7F800000, 1.0, 7.0)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<96x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @moe_c8_limit(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>, %p: tensor<?x2xf32>, %u: tensor<96x4xf32>, %d: tensor<32x6xf32>) {
  // expected-error @below {{expected limit to be positive, but got 0.000000e+00 : f32}}
  hone.moe silu %x, experts(%i, %p), up(%u), down(%d) fused halves swiglu(1.0, 1.0, 0.0)
    : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<96x4xf32>, tensor<32x6xf32>) -> tensor<?x4xf32>
  return
}
