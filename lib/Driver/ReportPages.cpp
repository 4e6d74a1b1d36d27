// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages of HTML: one compression, and several beside each other. All that colours or a plot show is in a table too.

#include "CompressionReport.h"
#include "Plot.h"
#include "WeightGrid.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {

static std::string inMegabytes(int64_t bytes) { return llvm::formatv("{0:F3}", static_cast<double>(bytes) / 1e6); }

static std::string inDigits(std::optional<double> error) {
  return error ? llvm::formatv("{0:F4}", *error).str() : std::string("&ndash;");
}

static std::string number(const llvm::Twine &text) { return ("<td class=\"number\">" + text + "</td>").str(); }

/// Heads of columns; those that begin with # are of numbers.
static std::string makeHead(llvm::StringRef caption, llvm::ArrayRef<llvm::StringRef> columns) {
  std::string head = ("<div class=\"scroll\"><table>\n<caption>" + caption + "</caption>\n<thead><tr>").str();
  for (llvm::StringRef column : columns) {
    bool isNumber = column.consume_front("#");
    head += ("<th scope=\"col\"" + llvm::Twine(isNumber ? " class=\"number\">" : ">") + column + "</th>").str();
  }
  return head + "</tr></thead>\n<tbody>\n";
}

static constexpr llvm::StringLiteral kTableEnd = "</tbody></table></div>\n";

//===----------------------------------------------------------------------===//
// One compression
//===----------------------------------------------------------------------===//

static std::string makeTotals(const CompressionRecord &record) {
  double after = record.bitsPerWeight();
  double before = record.bytesAfter() ? after * record.bytesBefore() / record.bytesAfter() : 0;
  std::string table = makeHead("Totals", {"", "#before", "#after"});
  auto row = [&](llvm::StringRef name, const llvm::Twine &left, const llvm::Twine &right) {
    table += ("<tr><th scope=\"row\">" + name + "</th>" + number(left) + number(right) + "</tr>\n").str();
  };
  row("Megabytes of weights", inMegabytes(record.bytesBefore()), inMegabytes(record.bytesAfter()));
  row("Bits per weight", llvm::formatv("{0:F3}", before).str(), llvm::formatv("{0:F3}", after).str());
  if (record.before && record.after)
    row("Perplexity", inDigits(record.before->perplexity), inDigits(record.after->perplexity));
  return table + kTableEnd.str();
}

static std::string getShape(const std::vector<int64_t> &shape) {
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), " × ");
}

/// `reason` says what was done with the weight; it is numbered.
static std::string makeRow(const WeightRecord &weight, llvm::StringRef reason, size_t numberOfReason) {
  std::string shape = getShape(weight.shapeAfter), before = getShape(weight.shapeBefore);
  if (shape != before)
    shape = (before.empty() ? "none" : before) + " → " + (shape.empty() ? "none" : shape);
  std::string form = weight.formAfter;
  if (weight.formBefore != form)
    form = weight.formBefore + " → " + (form.empty() ? "none" : form);
  return llvm::formatv("<tr><th scope=\"row\">{0}</th>{1}<td><code>{2}</code></td>{3}{4}{5}{6}{7}"
                       "<td class=\"number\" title=\"{8}\">{9}</td></tr>\n",
                       escapeHtml(weight.name), number(shape), escapeHtml(form),
                       number(inMegabytes(weight.bytesBefore)), number(inMegabytes(weight.bytesAfter)),
                       number(llvm::formatv("{0:F2}", weight.bitsPerWeight()).str()),
                       number(inDigits(weight.outputError())), number(inDigits(weight.weightError())),
                       escapeHtml(reason), numberOfReason)
      .str();
}

/// A row for each weight, and below them what was done, which is the same for many.
static std::string makeWeights(const CompressionRecord &record) {
  std::string table = makeHead("All weights, in the order in which the program reads them",
                               {"Weight", "#Shape", "Stored as", "#MB before", "#MB after", "#Bits",
                                "#Error of outputs", "#Error of weight", "#What was done"});
  std::string list = "<h2>What was done, or why nothing was</h2>\n<ol>\n";
  std::map<std::string, size_t> reasons;
  for (const WeightRecord &weight : record.weights) {
    auto [reason, isNew] = reasons.try_emplace(weight.describe(), reasons.size() + 1);
    if (isNew)
      list += "<li>" + escapeHtml(reason->first) + "</li>\n";
    table += makeRow(weight, reason->first, reason->second);
  }
  return table + kTableEnd.str() + list + "</ol>\n";
}

std::string makeReportPage(const CompressionRecord &record) {
  std::string body = "<p>Compressed from <code>" + escapeHtml(record.model) + "</code> by <code>" +
                     escapeHtml(record.passes) + "</code>. " + std::to_string(record.countCompressed()) + " of " +
                     std::to_string(record.weights.size()) + " weights changed.</p>\n";
  body += makeTotals(record);
  body += drawGrids(record);
  body += "<p>The error of the outputs is the root of their mean square change over the calibration, relative to the "
          "outputs; that of a weight is the norm of its change, relative to its own. Of several steps the squares are "
          "added.</p>\n";
  return makePage("Compression of " + record.label, body + makeWeights(record));
}

//===----------------------------------------------------------------------===//
// Several
//===----------------------------------------------------------------------===//

std::string makeFrontierPage(llvm::ArrayRef<ReportPoint> points) {
  std::vector<bool> isOn = findFrontier(points);
  Plot plot{"frontier",
            "Bits per weight and perplexity",
            "One point a compression. Those on the line are the frontier: nothing else is as small and better.",
            "bits per weight",
            "perplexity",
            {},
            /*linksMarked=*/true};
  std::string table = makeHead("The same as numbers", {"Compression", "#Bits per weight", "#Megabytes", "#Perplexity",
                                                       "On the frontier", "Passes"});
  for (auto [i, point] : llvm::enumerate(points)) {
    plot.points.push_back(
        {point.bitsPerWeight, point.perplexity,
         llvm::formatv("{0}: {1:F3} bits, perplexity {2:F4}", point.label, point.bitsPerWeight, point.perplexity).str(),
         point.label, isOn[i]});
    table += llvm::formatv("<tr><th scope=\"row\">{0}</th>{1}{2}{3}<td>{4}</td><td><code>{5}</code></td></tr>\n",
                           escapeHtml(point.label), number(llvm::formatv("{0:F3}", point.bitsPerWeight).str()),
                           number(inMegabytes(point.bytes)), number(llvm::formatv("{0:F4}", point.perplexity).str()),
                           isOn[i] ? "yes" : "no", escapeHtml(point.passes))
                 .str();
  }
  return makePage("The frontier of compression", drawPlot(plot) + table + kTableEnd.str());
}

} // namespace hone
