// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of a file of statistics (docs/calibration.md), for who writes it and who reads it.

#ifndef HONE_IO_STATISTICS_FORMAT_H
#define HONE_IO_STATISTICS_FORMAT_H

#include <string_view>

namespace hone::io {

// Metadata: what the file is, and the key of a weight's input before its name.
constexpr std::string_view kStatisticsFormat = "hone-statistics", kStatisticsVersion = "1", kInputOf = "input of ";

// Names of tensors, after the number of an input.
constexpr std::string_view kSecondMoment = ".second_moment", kLargest = ".absmax", kRows = ".rows";

// A tensor, before the name of a weight.
constexpr std::string_view kCostOf = "cost of ";

} // namespace hone::io

#endif // HONE_IO_STATISTICS_FORMAT_H
