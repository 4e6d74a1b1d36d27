// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters name weights by layer, or give them a number; then the node that reads one says where it stands.

#include "WeightGrid.h"

#include "Plot.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {

/// Whether a part of a name says what is done with the weight, and not which one it is: MatMul, MatMul_1, weight.
static bool isOperation(llvm::StringRef word) {
  static const llvm::StringRef operations[] = {"MatMul", "Gemm", "Gather", "MatMulNBits", "Transpose", "weight"};
  return llvm::is_contained(operations, word.split('_').first);
}

std::optional<WeightPlace> parsePlace(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(name, words, "./");
  auto *number = llvm::find_if(words, [](llvm::StringRef word) { return llvm::all_of(word, llvm::isDigit); });
  int64_t layer = 0;
  if (number == words.end() || number->getAsInteger(10, layer))
    return std::nullopt;
  llvm::ArrayRef<llvm::StringRef> rest(number + 1, words.end());
  while (!rest.empty() && isOperation(rest.back()))
    rest = rest.drop_back();
  if (rest.empty())
    return std::nullopt;
  return WeightPlace{layer, llvm::join(rest, ".")};
}

namespace {

using Value = std::optional<double>;
using GetValue = llvm::function_ref<Value(const WeightRecord &)>;

/// The matrices of a record, by place.
class Grid {
public:
  explicit Grid(const CompressionRecord &record);

  std::string draw(llvm::StringRef caption, GetValue getValue, int digits) const;
  std::string drawOthers(llvm::StringRef error, GetValue getError) const;

private:
  void add(const WeightRecord &weight);
  double findMost(GetValue getValue) const;

  std::map<int64_t, std::map<std::string, const WeightRecord *>> layers;
  llvm::SetVector<llvm::StringRef> projections; // in the order of the program
  std::vector<const WeightRecord *> all, others;
};

} // namespace

Grid::Grid(const CompressionRecord &record) {
  for (const WeightRecord &weight : record.weights)
    if (std::max(weight.shapeBefore.size(), weight.shapeAfter.size()) > 1)
      add(weight);
}

void Grid::add(const WeightRecord &weight) {
  all.push_back(&weight);
  std::optional<WeightPlace> place = parsePlace(weight.name);
  if (!place)
    place = parsePlace(weight.reader);
  if (!place)
    return others.push_back(&weight);
  // A block that reads several matrices is one node after raising.
  auto &row = layers[place->layer];
  std::string projection = place->projection;
  for (int number = 2; row.count(projection); ++number)
    projection = place->projection + " (" + std::to_string(number) + ")";
  projections.insert(row.try_emplace(projection, &weight).first->first);
}

double Grid::findMost(GetValue getValue) const {
  double most = 0;
  for (const WeightRecord *weight : all)
    most = std::max(most, getValue(*weight).value_or(0));
  return most;
}

static std::string inDigits(Value value, int digits) {
  return value ? llvm::formatv(digits == 2 ? "{0:F2}" : "{0:F3}", *value).str() : std::string("&ndash;");
}

/// What a pointer that rests on the matrix shows.
static std::string makeTitle(const WeightRecord &weight) {
  std::string title = weight.name + ": " + weight.formBefore;
  if (weight.formAfter != weight.formBefore)
    title += " → " + (weight.formAfter.empty() ? "none" : weight.formAfter);
  title += llvm::formatv(", {0:F2} bits", weight.bitsPerWeight()).str();
  if (Value error = weight.outputError())
    title += llvm::formatv(", error of outputs {0:F4}", *error).str();
  if (Value error = weight.weightError())
    title += llvm::formatv(", error of weight {0:F4}", *error).str();
  return escapeHtml(title);
}

/// A cell in a colour that is the stronger the nearer the value is to `most`.
static std::string makeCell(const WeightRecord &weight, Value value, double most, int digits) {
  int share = value && most > 0 ? static_cast<int>(*value / most * 50) : 0; // percent; more would hide the text
  return llvm::formatv("<td class=\"number heat\" style=\"--heat:{0}%\" title=\"{1}\">{2}</td>", share,
                       makeTitle(weight), inDigits(value, digits))
      .str();
}

static std::string makeHead(llvm::StringRef caption, llvm::StringRef first, llvm::ArrayRef<llvm::StringRef> columns) {
  std::string head = llvm::formatv("<div class=\"scroll\"><table>\n<caption>{0}</caption>\n<thead><tr>"
                                   "<th scope=\"col\">{1}</th>",
                                   caption, first)
                         .str();
  for (llvm::StringRef column : columns)
    head += llvm::formatv("<th scope=\"col\" class=\"number\">{0}</th>", escapeHtml(column)).str();
  return head + "</tr></thead>\n<tbody>\n";
}

static constexpr llvm::StringLiteral kTableEnd = "</tbody></table></div>\n";

std::string Grid::draw(llvm::StringRef caption, GetValue getValue, int digits) const {
  if (layers.empty())
    return "";
  double most = findMost(getValue);
  std::string table = makeHead(caption, "Layer", projections.getArrayRef());
  for (const auto &[layer, row] : layers) {
    table += llvm::formatv("<tr><th scope=\"row\">{0}</th>", layer).str();
    for (llvm::StringRef projection : projections) {
      auto found = row.find(projection.str());
      table += found == row.end() ? "<td></td>" : makeCell(*found->second, getValue(*found->second), most, digits);
    }
    table += "</tr>\n";
  }
  return table + kTableEnd.str();
}

std::string Grid::drawOthers(llvm::StringRef error, GetValue getError) const {
  if (others.empty())
    return "";
  auto getBits = [](const WeightRecord &weight) -> Value { return weight.bitsPerWeight(); };
  double mostError = findMost(getError), mostBits = findMost(getBits);
  std::string table = makeHead("Matrices that are in no layer", "Matrix", {error, "Bits"});
  for (const WeightRecord *weight : others)
    table += "<tr><th scope=\"row\">" + escapeHtml(weight->name) + "</th>" +
             makeCell(*weight, getError(*weight), mostError, 3) + makeCell(*weight, getBits(*weight), mostBits, 2) +
             "</tr>\n";
  return table + kTableEnd.str();
}

std::string drawGrids(const CompressionRecord &record) {
  bool knowsOutputs =
      llvm::any_of(record.weights, [](const WeightRecord &weight) { return weight.outputError().has_value(); });
  auto getError = [&](const WeightRecord &weight) {
    return knowsOutputs ? weight.outputError() : weight.weightError();
  };
  llvm::StringRef error = knowsOutputs ? "Relative error of the outputs" : "Relative error of the weight";
  Grid grid(record);
  auto getBits = [](const WeightRecord &weight) -> Value { return weight.bitsPerWeight(); };
  return grid.draw(error, getError, /*digits=*/3) + grid.draw("Bits of each element", getBits, /*digits=*/2) +
         grid.drawOthers(error, getError);
}

} // namespace hone
