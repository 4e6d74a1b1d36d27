// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grids of layer and head, and a picture of blocks for each head.

#include "AttentionReport.h"

#include "Plot.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace hone {

using cli::HeadThresholds;
using Layers = llvm::ArrayRef<cli::LayerThresholds>;

static constexpr llvm::StringLiteral kTableEnd = "</tbody></table></div>\n";

static std::string inPercent(double share) { return llvm::formatv("{0:P1}", share).str(); }

/// A pointer that rests on a cell shows this.
static std::string makeTitle(const std::string &slot, size_t head, const HeadThresholds &found) {
  return escapeHtml(llvm::formatv("{0}, head {1}: {2} of the blocks, error {3}; share {4:F2}, top-k {5:F2}, "
                                  "similarity {6:F2}",
                                  slot, head, inPercent(found.blocks), inPercent(found.error), found.share, found.least,
                                  found.similarity)
                        .str());
}

/// A row for each layer and a column for each head; a colour is the stronger the larger the value is.
static std::string drawGrid(llvm::StringRef caption, Layers layers, double HeadThresholds::*value) {
  size_t columns = 0;
  double most = 0;
  for (const auto &[slot, heads] : layers) {
    columns = std::max(columns, heads.size());
    for (const HeadThresholds &head : heads)
      most = std::max(most, head.*value);
  }
  std::string table =
      llvm::formatv("<div class=\"scroll\"><table>\n<caption>{0}</caption>\n<thead><tr><th scope=\"col\">"
                    "Keys</th>",
                    caption)
          .str();
  for (size_t head = 0; head < columns; ++head)
    table += llvm::formatv("<th scope=\"col\" class=\"number\">head {0}</th>", head).str();
  table += "</tr></thead>\n<tbody>\n";
  for (const auto &[slot, heads] : layers) {
    table += "<tr><th scope=\"row\">" + escapeHtml(slot) + "</th>";
    for (auto [head, found] : llvm::enumerate(heads))
      table += llvm::formatv("<td class=\"number heat\" style=\"--heat:{0}%\" title=\"{1}\">{2}</td>",
                             most > 0 ? static_cast<int>(found.*value / most * 50) : 0, makeTitle(slot, head, found),
                             inPercent(found.*value))
                   .str();
    table += "</tr>\n";
  }
  return table + kTableEnd.str();
}

/// The blocks that a head reads: a row for each block of queries, a column for each of keys, and a rectangle for neighbours in a row.
static std::string drawMask(const std::string &slot, size_t head, const HeadThresholds &found) {
  int64_t blocks = 0;
  for (const std::vector<int64_t> &list : found.lists)
    blocks = std::max(blocks, list.empty() ? 0 : list.back() + 1);
  std::string path;
  llvm::raw_string_ostream os(path);
  for (auto [row, list] : llvm::enumerate(found.lists))
    for (size_t begin = 0, end; begin < list.size(); begin = end) {
      for (end = begin + 1; end < list.size() && list[end] == list[end - 1] + 1;)
        ++end;
      os << llvm::formatv("M{0} {1}h{2}v1h-{2}z", list[begin], row, end - begin);
    }
  return llvm::formatv("<figure class=\"mask\"><svg viewBox=\"0 0 {0} {1}\" preserveAspectRatio=\"none\" role=\"img\">"
                       "<title>{2}</title><path d=\"{3}\"/></svg><figcaption>head {4}, {5}</figcaption></figure>\n",
                       std::max<int64_t>(blocks, 1), std::max<size_t>(found.lists.size(), 1),
                       makeTitle(slot, head, found), path, head, inPercent(found.blocks))
      .str();
}

std::string makeAttentionPage(const std::string &model, Layers layers, int64_t block) {
  std::string body = "<p>What the KV heads of <code>" + escapeHtml(model) +
                     "</code> read with the thresholds that were found for them (SpargeAttention).</p>\n";
  body += drawGrid("Blocks of keys that are read, of all that queries see", layers, &HeadThresholds::blocks);
  body += drawGrid("Error: magnitudes of what attention is off by, over those of what it gives", layers,
                   &HeadThresholds::error);
  body +=
      llvm::formatv("<h2>Blocks of the last window</h2>\n<p>A row is a block of queries, the first at the top, and a "
                    "column a block of {0} keys.</p>\n",
                    block)
          .str();
  for (const auto &[slot, heads] : layers) {
    body += "<h3>" + escapeHtml(slot) + "</h3>\n<div class=\"masks\">\n";
    for (auto [head, found] : llvm::enumerate(heads))
      body += drawMask(slot, head, found);
    body += "</div>\n";
  }
  return makePage("Sparse attention", body);
}

} // namespace hone
