// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scales that move from the inputs of weights to whatever computes these inputs, so that rounding loses less.

#ifndef HONE_COMPRESS_CHANNELSCALES_H
#define HONE_COMPRESS_CHANNELSCALES_H

#include "hone/Compress/AffineQuantization.h"
#include "hone/Compress/Matrix.h"

#include <vector>

namespace hone::compress {

/// What inputs of weights are to be divided by, and what that gains.
struct ChannelScales {
  std::vector<float> scales; // [K], finite and positive; all 1 where nothing is gained
  double error;              // estimated mean square of the outputs' error, relative to that without scales; 1 or less
};

/// The scales s [K] with which rounding the weights w_nj · s_j to the nearest codes of `format` costs the outputs least, that is
/// the sum over j of H_jj · (w_nj - rounded(w_nj · s_j) / s_j)², where all `weights` [N, K] read the same inputs (Lin et al., "AWQ",
/// 2024, section 3.2). Tried are s_j = H_jj^(a/2) · m_j^-b for a and b in quarters from 0 to 1, m_j being the root of the mean
/// square of the weights' column j, so that inputs that are large, and columns that are small, are stored finer. Their
/// geometric mean is 1. A channel without inputs or weights has the scale 1.
///
/// Of each weight at most 256 rows are looked at, at equal distances. `hessianDiagonal` are H_jj [K], finite and 0 or more. What
/// has no finite scales is not chosen. Deterministic; one thread.
ChannelScales findChannelScales(std::span<const Weight> weights, const AffineFormat &format,
                                std::span<const float> hessianDiagonal);

} // namespace hone::compress

#endif // HONE_COMPRESS_CHANNELSCALES_H
