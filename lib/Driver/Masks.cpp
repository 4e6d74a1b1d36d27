// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts and draws zeros of matrices, whatever their encoding: what is drawn is what unpacking gives.

#include "Masks.h"

#include "Compiler.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/io/printable.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace mlir;

namespace hone {

namespace {

/// An element is an outlier from so many times the root of the mean square of its row on.
constexpr double kOutlier = 4;

struct Range {
  int64_t begin = 0, end = 0;
};

/// A matrix of floats, and what is counted of it.
class Mask {
public:
  Mask(std::vector<float> elements, int64_t columns, int64_t group)
      : elements(std::move(elements)), columns(columns), group(group) {}

  int64_t rows() const { return columns ? static_cast<int64_t>(elements.size()) / columns : 0; }
  bool isKept(int64_t row, int64_t column) const { return elements[row * columns + column] != 0; }
  /// The least magnitude of an outlier of the row; more than any where it is all 0.
  double outlierOf(int64_t row) const;
  int64_t countKept(int64_t row, Range range) const;
  int64_t countKept() const { return elements.size() - llvm::count(elements, 0.0f); }
  int64_t countOutliers() const;
  /// How many whole groups keep 0, 1, … of their elements.
  std::vector<int64_t> countGroups() const;

  void draw(llvm::raw_ostream &os, Range rows, Range columns) const;

private:
  std::vector<float> elements;
  int64_t columns, group;
};

} // namespace

double Mask::outlierOf(int64_t row) const {
  double sum = 0;
  for (float element : ArrayRef(elements).slice(row * columns, columns))
    sum += static_cast<double>(element) * static_cast<double>(element);
  return sum > 0 ? kOutlier * std::sqrt(sum / static_cast<double>(columns)) : INFINITY;
}

int64_t Mask::countKept(int64_t row, Range range) const {
  int64_t kept = 0;
  for (int64_t column = range.begin; column < range.end; ++column)
    kept += isKept(row, column);
  return kept;
}

int64_t Mask::countOutliers() const {
  int64_t outliers = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    double least = outlierOf(row);
    outliers += llvm::count_if(ArrayRef(elements).slice(row * columns, columns),
                               [&](float element) { return std::abs(element) >= least; });
  }
  return outliers;
}

std::vector<int64_t> Mask::countGroups() const {
  std::vector<int64_t> counts(group + 1);
  for (int64_t row = 0; row < rows(); ++row)
    for (int64_t begin = 0; begin + group <= columns; begin += group)
      ++counts[countKept(row, {begin, begin + group})];
  return counts;
}

void Mask::draw(llvm::raw_ostream &os, Range drawnRows, Range drawnColumns) const {
  for (int64_t row = drawnRows.begin; row < drawnRows.end; ++row) {
    double least = outlierOf(row);
    os << llvm::formatv("{0,7} ", row);
    for (int64_t column = drawnColumns.begin; column < drawnColumns.end; ++column) {
      if (column % group == 0)
        os << ' ';
      double size = std::abs(elements[row * columns + column]);
      os << (size == 0 ? '.' : size >= least ? 'O' : '#');
    }
    os << llvm::formatv("  {0} of {1} here, {2} of {3} in the row\n", countKept(row, drawnColumns),
                        drawnColumns.end - drawnColumns.begin, countKept(row, {0, columns}), columns);
  }
}

/// The elements of a matrix of floats; nothing where `param` is something else. Fails, after an error, where they cannot be read.
static FailureOr<std::optional<std::vector<float>>> readMatrix(ParamOp param) {
  RankedTensorType type = param.getTensorType();
  Type element = type.getElementType();
  bool isPlain = !type.getEncoding() && (element.isF16() || element.isBF16());
  if (type.getRank() != 2 || !(element.isF32() || isPlain))
    return std::optional<std::vector<float>>();
  if (!isPlain) {
    FailureOr<std::vector<float>> elements = readStoredElements(param);
    if (failed(elements))
      return failure();
    return std::optional(std::move(*elements));
  }
  FailureOr<StoredBytes> stored = StoredBytes::open(param.getPlaneStorage()[0], param.getLoc());
  if (failed(stored))
    return failure();
  PlainElements plain(element);
  std::vector<float> elements(stored->get().size() / 2);
  for (auto [i, value] : llvm::enumerate(elements))
    value = plain.load(stored->get(), i);
  return std::optional(std::move(elements));
}

static std::string getForm(RankedTensorType type) {
  std::string form;
  llvm::raw_string_ostream os(form);
  os << type.getDimSize(0) << 'x' << type.getDimSize(1) << ' ';
  if (type.getEncoding())
    os << type.getEncoding();
  else
    os << type.getElementType();
  return form;
}

static double inPercent(int64_t part, int64_t whole) { return whole ? 100.0 * part / whole : 0; }

/// "2:4" if no group keeps more than 2 of 4, "-" if one keeps all.
static std::string getPattern(const std::vector<int64_t> &groups) {
  size_t most = groups.size();
  while (most > 0 && groups[most - 1] == 0)
    --most;
  return most == 0 || most == groups.size() ? "-" : llvm::formatv("{0}:{1}", most - 1, groups.size() - 1).str();
}

static FailureOr<Range> parseRange(StringRef option, StringRef text, int64_t size, Location loc) {
  auto [first, last] = text.split(':');
  Range range;
  if (first.getAsInteger(10, range.begin) || last.getAsInteger(10, range.end) || range.begin < 0 ||
      range.end <= range.begin)
    return emitError(loc) << "expected --" << option << " to be B:E with 0 <= B < E, but got '" << text << "'";
  if (range.begin >= size)
    return emitError(loc) << "expected --" << option << " to begin before " << size << ", but got '" << text << "'";
  return Range{range.begin, std::min(range.end, size)};
}

static LogicalResult drawWeight(ParamOp param, const Mask &mask, const MaskOptions &options, Location loc) {
  RankedTensorType type = param.getTensorType();
  FailureOr<Range> rows = parseRange("rows", options.rows, type.getDimSize(0), loc);
  if (failed(rows))
    return failure();
  FailureOr<Range> columns = parseRange("columns", options.columns, type.getDimSize(1), loc);
  if (failed(columns))
    return failure();
  int64_t kept = mask.countKept(), count = type.getNumElements();
  llvm::raw_ostream &os = llvm::outs();
  os << llvm::formatv("{0}: {1}\n  {2} of {3} elements kept ({4:F2} %), {5} outliers\n",
                      io::printable(param.getSymName()), getForm(type), kept, count, inPercent(kept, count),
                      mask.countOutliers());
  for (auto [number, groups] : llvm::enumerate(mask.countGroups()))
    if (groups)
      os << llvm::formatv("  {0} groups of {1} keep {2}\n", groups, options.group, number);
  os << llvm::formatv(
      "  rows {0} to {1}, columns {2} to {3}: . is 0, # is kept, O is kept and at least {4} times the root "
      "of the mean square of its row\n",
      rows->begin, rows->end - 1, columns->begin, columns->end - 1, static_cast<int>(kOutlier));
  mask.draw(os, *rows, *columns);
  return success();
}

static void printLine(ParamOp param, const Mask &mask) {
  RankedTensorType type = param.getTensorType();
  llvm::outs() << llvm::formatv("{0,8:F2} {1,8} {2,9}  {3}: {4}\n", inPercent(mask.countKept(), type.getNumElements()),
                                getPattern(mask.countGroups()), mask.countOutliers(), io::printable(param.getSymName()),
                                getForm(type));
}

/// The parameters of a model after phase `raise`, or those of an artefact.
static OwningOpRef<ModuleOp> readParameters(StringRef path, const ReadOptions &options, MLIRContext *context) {
  if (llvm::sys::fs::is_directory(path) || path.ends_with(".hone"))
    return readWeights(path, context);
  OwningOpRef<ModuleOp> module = readModel(path, context, options);
  if (module && failed(runPhases(*module, "raise")))
    return {};
  return module;
}

LogicalResult inspectMasks(StringRef path, const MaskOptions &options, const ReadOptions &reading,
                           MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(path), 0, 0);
  OwningOpRef<ModuleOp> module = readParameters(path, reading, context);
  if (!module)
    return failure();
  bool isFound = false;
  if (options.weight.empty())
    llvm::outs() << llvm::formatv("{0,8} {1,8} {2,9}  {3}\n", "kept %", "pattern", "outliers", "matrix");
  for (auto param : module->getOps<ParamOp>()) {
    if (!options.weight.empty() && options.weight != param.getSymName().str())
      continue;
    FailureOr<std::optional<std::vector<float>>> elements = readMatrix(param);
    if (failed(elements))
      return failure();
    if (!*elements)
      continue;
    isFound = true;
    Mask mask(std::move(**elements), param.getTensorType().getDimSize(1), options.group);
    if (options.weight.empty())
      printLine(param, mask);
    else if (failed(drawWeight(param, mask, options, loc)))
      return failure();
  }
  if (!isFound && !options.weight.empty())
    return emitError(loc) << "unknown matrix '" << options.weight
                          << "'; 'hone inspect --masks' without --weight lists those of the model";
  return success();
}

} // namespace hone
