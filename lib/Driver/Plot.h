// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plots as SVG inside of a page of HTML, whose style sheet has the colours.

#ifndef HONE_LIB_DRIVER_PLOT_H
#define HONE_LIB_DRIVER_PLOT_H

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace hone {

struct PlotPoint {
  double x, y;
  std::string title;     // what a pointer that rests on it shows
  std::string label;     // what is written beside it, if anything
  bool isMarked = false; // in the colour that stands out
};

struct Plot {
  std::string id; // unique in the page
  std::string title, description, xLabel, yLabel;
  std::vector<PlotPoint> points;
  bool linksMarked = false; // a line through the marked points, by x
};

/// `text` where HTML has text or the value of an attribute.
std::string escapeHtml(llvm::StringRef text);

/// About `count` round numbers (1, 2 or 5 times a power of ten apart) that cover [least, most], least < most.
std::vector<double> chooseTicks(double least, double most, int count);

/// An element <figure>. Without points it is empty.
std::string drawPlot(const Plot &plot);

/// A whole page with `body`, for light and dark surroundings.
std::string makePage(llvm::StringRef title, llvm::StringRef body);

} // namespace hone

#endif // HONE_LIB_DRIVER_PLOT_H
