//===- HoneOps.td - all operations of the hone dialect -------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One file a family; the reference page is generated from this.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_OPS_TD
#define HONE_OPS_TD

include "Hone/HoneParamOps.td"
include "Hone/HoneProductOps.td"
include "Hone/HoneConvolutionOps.td"
include "Hone/HoneNormOps.td"
include "Hone/HoneAttentionOps.td"
include "Hone/HoneSelectionOps.td"
include "Hone/HoneLinearAttentionOps.td"
include "Hone/HoneMlpOps.td"
include "Hone/HoneLossOps.td"
include "Hone/HoneStateOps.td"
include "Hone/HoneObserveOps.td"

#endif // HONE_OPS_TD
