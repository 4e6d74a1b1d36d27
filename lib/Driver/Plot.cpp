// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Points and axes as SVG. Whoever cannot see it gets the title, the description and the table that pages have beside it.

#include "Plot.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hone {

static constexpr double kWidth = 860, kHeight = 320, kLeft = 70, kRight = 20, kTop = 16, kBottom = 48;

std::string escapeHtml(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printHTMLEscaped(text, os);
  return escaped;
}

std::vector<double> chooseTicks(double least, double most, int count) {
  double rough = (most - least) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * (rough <= power ? 1 : rough <= 2 * power ? 2 : rough <= 5 * power ? 5 : 10);
  auto first = static_cast<int64_t>(std::floor(least / step)), last = static_cast<int64_t>(std::ceil(most / step));
  std::vector<double> ticks;
  for (int64_t i = first; i <= last; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

namespace {

/// One axis: numbers to places.
struct Axis {
  std::vector<double> ticks;
  double begin, end; // places of the first and the last tick

  Axis(double least, double most, int count, double begin, double end)
      : ticks(chooseTicks(least, most > least ? most : least + 1, count)), begin(begin), end(end) {}
  double place(double value) const {
    return begin + (value - ticks.front()) / (ticks.back() - ticks.front()) * (end - begin);
  }
};

class Drawing {
public:
  explicit Drawing(const Plot &plot);
  std::string draw();

private:
  void drawAxes();
  void drawLine();
  void drawPoint(const PlotPoint &point);

  const Plot &plot;
  Axis x, y;
  std::string svg;
  llvm::raw_string_ostream os{svg};
};

} // namespace

static std::pair<double, double> getRange(const Plot &plot, double PlotPoint::*value) {
  auto [least, most] = std::minmax_element(plot.points.begin(), plot.points.end(),
                                           [&](const auto &a, const auto &b) { return a.*value < b.*value; });
  return {(*least).*value, (*most).*value};
}

static Axis makeAxis(const Plot &plot, double PlotPoint::*value, int count, double begin, double end) {
  auto [least, most] = getRange(plot, value);
  return {least, most, count, begin, end};
}

Drawing::Drawing(const Plot &plot)
    : plot(plot), x(makeAxis(plot, &PlotPoint::x, 8, kLeft, kWidth - kRight)),
      y(makeAxis(plot, &PlotPoint::y, 5, kHeight - kBottom, kTop)) {}

void Drawing::drawAxes() {
  for (double tick : y.ticks)
    os << llvm::formatv(
        "<line class='grid' x1='{0:F1}' x2='{1:F1}' y1='{2:F1}' y2='{2:F1}'/><text x='{3:F1}' y='{4:F1}' "
        "text-anchor='end'>{5}</text>\n",
        kLeft, kWidth - kRight, y.place(tick), kLeft - 8, y.place(tick) + 4, llvm::formatv("{0:F3}", tick).str());
  for (double tick : x.ticks)
    os << llvm::formatv("<text x='{0:F1}' y='{1:F1}' text-anchor='middle'>{2}</text>\n", x.place(tick),
                        kHeight - kBottom + 18, llvm::formatv("{0:F1}", tick).str());
  os << llvm::formatv("<text x='{0:F1}' y='{1:F1}' text-anchor='middle'>{2}</text>\n", (kLeft + kWidth - kRight) / 2,
                      kHeight - 8, escapeHtml(plot.xLabel));
  os << llvm::formatv("<text transform='translate(16 {0:F1}) rotate(-90)' text-anchor='middle'>{1}</text>\n",
                      (kTop + kHeight - kBottom) / 2, escapeHtml(plot.yLabel));
}

void Drawing::drawLine() {
  std::vector<std::pair<double, double>> corners;
  for (const PlotPoint &point : plot.points)
    if (point.isMarked)
      corners.emplace_back(point.x, point.y);
  llvm::sort(corners);
  os << "<polyline class='line' points='";
  for (auto [atX, atY] : corners)
    os << llvm::formatv("{0:F1},{1:F1} ", x.place(atX), y.place(atY));
  os << "'/>\n";
}

void Drawing::drawPoint(const PlotPoint &point) {
  double atX = x.place(point.x), atY = y.place(point.y);
  os << "<g" << (point.isMarked ? " class='marked'" : "") << "><title>" << escapeHtml(point.title) << "</title>";
  os << llvm::formatv("<circle cx='{0:F1}' cy='{1:F1}' r='4.5'/>", atX, atY);
  bool isLeft = atX > kWidth - 180; // where the label would leave the picture
  if (!point.label.empty())
    os << llvm::formatv("<text x='{0:F1}' y='{1:F1}' text-anchor='{2}'>{3}</text>", isLeft ? atX - 8 : atX + 8, atY - 6,
                        isLeft ? "end" : "start", escapeHtml(point.label));
  os << "</g>\n";
}

std::string Drawing::draw() {
  os << llvm::formatv("<figure><figcaption>{0}</figcaption>\n<svg viewBox='0 0 {1} {2}' role='img' "
                      "aria-labelledby='{3}-title {3}-text'>\n<title id='{3}-title'>{0}</title><desc id='{3}-text'>{4}"
                      "</desc>\n",
                      escapeHtml(plot.title), static_cast<int>(kWidth), static_cast<int>(kHeight), plot.id,
                      escapeHtml(plot.description));
  drawAxes();
  if (plot.linksMarked)
    drawLine();
  for (const PlotPoint &point : plot.points)
    drawPoint(point);
  os << "</svg></figure>\n";
  return svg;
}

std::string drawPlot(const Plot &plot) { return plot.points.empty() ? std::string() : Drawing(plot).draw(); }

/// Colours keep a contrast of at least 4.5 for text, 3 for lines and points.
static constexpr llvm::StringLiteral kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #5c6670; --grid: #d9dee3; --paper: #ffffff; --point: #3266ad; --marked: #b3471b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --faint: #a3adb8; --grid: #3a424b; --paper: #14181c; --point: #7fb0f0; --marked: #f2955f; }
}
body { margin: 2rem auto; max-width: 66rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; margin-bottom: .5rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 12px; }
svg .grid { stroke: var(--grid); } svg circle { fill: var(--point); }
svg .marked circle { fill: var(--marked); } svg .line { fill: none; stroke: var(--marked); stroke-width: 1.5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); }
td.number, th.number { text-align: right; } tbody th { font-weight: 400; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
.masks { display: flex; flex-wrap: wrap; gap: 1rem; } .mask { margin: 0; } .mask svg { width: 12rem; height: 12rem; border: 1px solid var(--grid); }
.mask path { fill: var(--point); } .mask figcaption { font-weight: 400; font-size: 14px; color: var(--faint); }
td.heat { background: color-mix(in srgb, var(--point) var(--heat), var(--paper)); }
)";

std::string makePage(llvm::StringRef title, llvm::StringRef body) {
  std::string escaped = escapeHtml(title);
  return llvm::formatv("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                       "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n"
                       "</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</html>\n",
                       escaped, kStyle, body)
      .str();
}

} // namespace hone
