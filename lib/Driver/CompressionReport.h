// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a user reads of a compression: a short table, JSON, a page, and a page that compares several.

#ifndef HONE_LIB_DRIVER_COMPRESSIONREPORT_H
#define HONE_LIB_DRIVER_COMPRESSIONREPORT_H

#include "CompressionRecord.h"

#include "llvm/Support/JSON.h"

namespace hone {

/// A compression beside others: how small, and how good.
struct ReportPoint {
  std::string label, passes;
  double bitsPerWeight = 0;
  int64_t bytes = 0;
  double perplexity = 0;
};

/// One weight of a record, a member of its `weights`.
llvm::json::Object describeWeight(const WeightRecord &weight);

/// All of `record` (docs/compression.md says what the members mean).
llvm::json::Object describeRecord(const CompressionRecord &record);

/// A dozen lines: totals, bytes by form, and the weights of the largest errors.
void printSummary(llvm::raw_ostream &os, const CompressionRecord &record);

/// A page of HTML that needs nothing else: totals, plots, and a table of all weights.
std::string makeReportPage(const CompressionRecord &record);

/// The points of a report: what was compressed, if its perplexity was measured, and the model as it came. Fails with a reason
/// that begins with `path`.
absl::StatusOr<std::vector<ReportPoint>> readReportPoints(const std::string &path);

/// For each point, whether none of the others is as small and better, or smaller and as good.
std::vector<bool> findFrontier(llvm::ArrayRef<ReportPoint> points);

/// The same of several compressions, as a page with a plot.
std::string makeFrontierPage(llvm::ArrayRef<ReportPoint> points);

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPRESSIONREPORT_H
