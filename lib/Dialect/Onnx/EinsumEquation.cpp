// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The equation of Einsum, read as ONNX's specification of the operator says.

#include "hone/Dialect/Onnx/EinsumEquation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::SmallVector;
using llvm::StringRef;

namespace hone::onnxir {

namespace {

using Label = EinsumEquation::Label;

class Parser {
public:
  explicit Parser(std::string &reason) : reason(reason) {}

  std::optional<SmallVector<Label>> parseTerm(StringRef text, std::optional<int64_t> rank);

private:
  std::string &reason;
  int64_t ellipsisRank = 0; // of the longest one
};

} // namespace

/// The labels of one term; `rank` says how many dimensions an ellipsis stands for (in the output: as many as anywhere).
std::optional<SmallVector<Label>> Parser::parseTerm(StringRef text, std::optional<int64_t> rank) {
  std::string packed;
  for (char c : text)
    if (c != ' ')
      packed += c;
  StringRef rest = packed;
  size_t dots = rest.find("...");
  int64_t letters = dots == StringRef::npos ? rest.size() : rest.size() - 3;
  int64_t hidden = dots == StringRef::npos ? 0 : rank ? *rank - letters : ellipsisRank;
  if (hidden < 0 || (rank && letters + hidden != *rank)) {
    reason = "expected the term '" + text.str() + "' of the equation to have " + std::to_string(*rank) +
             " labels, but got " + std::to_string(letters);
    return std::nullopt;
  }
  ellipsisRank = std::max(ellipsisRank, hidden);
  SmallVector<Label> labels;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (i == dots) { // the last dimension of every ellipsis has the same label
      for (int64_t d = hidden; d > 0; --d)
        labels.push_back(EinsumEquation::kEllipsis + d);
      i += 2;
    } else if (llvm::isAlpha(rest[i])) {
      labels.push_back(rest[i]);
    } else {
      reason =
          "expected the equation to have letters, commas, '...' and '->', but got '" + rest.substr(i, 1).str() + "'";
      return std::nullopt;
    }
  }
  return labels;
}

/// Without "->": the ellipsis, then the labels that occur once, in alphabetic order.
static SmallVector<Label> chooseOutput(llvm::ArrayRef<SmallVector<Label>> terms) {
  llvm::MapVector<Label, unsigned> uses;
  for (const SmallVector<Label> &term : terms)
    for (Label label : term)
      ++uses[label];
  SmallVector<Label> output;
  for (auto [label, count] : uses)
    if (count == 1 || label >= EinsumEquation::kEllipsis)
      output.push_back(label);
  llvm::sort(output, [](Label a, Label b) {
    bool hiddenA = a >= EinsumEquation::kEllipsis, hiddenB = b >= EinsumEquation::kEllipsis;
    return hiddenA != hiddenB ? hiddenA : hiddenA ? a > b : a < b;
  });
  return output;
}

std::optional<EinsumEquation> EinsumEquation::parse(StringRef equation, llvm::ArrayRef<int64_t> ranks,
                                                    std::string &reason) {
  auto [inputs, result] = equation.split("->");
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (texts.size() != ranks.size()) {
    reason = "expected the equation to have " + std::to_string(ranks.size()) + " terms, but got " +
             std::to_string(texts.size());
    return std::nullopt;
  }
  EinsumEquation parsed;
  Parser parser(reason);
  for (auto [text, rank] : llvm::zip_equal(texts, ranks)) {
    auto labels = parser.parseTerm(text, rank);
    if (!labels)
      return std::nullopt;
    parsed.terms.push_back(*labels);
  }
  if (!equation.contains("->")) {
    parsed.output = chooseOutput(parsed.terms);
    return parsed;
  }
  auto labels = parser.parseTerm(result, std::nullopt);
  if (!labels)
    return std::nullopt;
  parsed.output = *labels;
  for (Label label : parsed.output) {
    bool isKnown = llvm::any_of(parsed.terms, [&](const auto &term) { return llvm::is_contained(term, label); });
    if (!isKnown || llvm::count(parsed.output, label) != 1) {
      reason = "expected each label of the result to be in a term, and once in the result";
      return std::nullopt;
    }
  }
  return parsed;
}

} // namespace hone::onnxir
