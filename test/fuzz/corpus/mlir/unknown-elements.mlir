hone.param @w : tensor<3x2x!f32, #hone.stored<f16>> = dense<1.0> : tensor<3x2xf32>
