// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scales that lose little over a group, instead of those that reach its largest element.

#ifndef HONE_COMPRESS_SCALESEARCH_H
#define HONE_COMPRESS_SCALESEARCH_H

#include "hone/Compress/AffineQuantization.h"

namespace hone::compress {

/// Sum over i of importance_i · (w_i - value of the code nearest to w_i)², in f64.
double getRoundingError(const AffineFormat &format, AffineScale scale, std::span<const float> elements,
                        std::span<const float> importance);

/// Of the scales that are tried, the one with the least getRoundingError; never more than that of fitScale, which is one of
/// them. `importance` is of the size of `elements`, finite, and 0 or more.
///
/// Tried are steps of 5/16 to 20/16 of fitScale's, then finer ones around the best, then the best for the codes that
/// it gives (least squares), twice. Without zero points each comes with both signs, since there is one code more on one side;
/// with them, each also with the neighbours of its zero point. Around 60 evaluations of the error in f32. Nothing where fitScale
/// has none.
std::optional<AffineScale> searchScale(const AffineFormat &format, std::span<const float> elements,
                                       std::span<const float> importance);

} // namespace hone::compress

#endif // HONE_COMPRESS_SCALESEARCH_H
