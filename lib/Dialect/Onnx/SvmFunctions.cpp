// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Support vector machines of ai.onnx.ml as products with support vectors and coefficients. Compiled with exceptions, as
// libonnx reports by them.

#include "MachineLearning.h"

#include <algorithm>
#include <numeric>

namespace hone::onnxir {

/// X as `x`, floats of [rows, features]; how many features a vector has of which `count` have `total` elements.
static int64_t readRows(FunctionBody &body, int64_t total, int64_t count) {
  if (body.rank(0) != 2)
    body.refuse("expected X to have 2 dimensions");
  if (total == 0 || total % count != 0)
    body.refuse("expected elements of " + std::to_string(count) + " vectors, but got " + std::to_string(total));
  int64_t features = total / count;
  if (auto given = body.size(0, 1); given && *given != features)
    body.refuse("expected X to have " + std::to_string(features) + " columns, but got " + std::to_string(*given));
  toFloats(body, "x");
  return features;
}

/// `to` = `from` to the power of `degree`, which is no fewer products than it has bits set.
static void raise(FunctionBody &body, const std::string &from, const std::string &to, float degree) {
  constexpr float kMostProducts = 8;
  if (degree != static_cast<int64_t>(degree) || degree < 1 || degree > kMostProducts) {
    body.row("degree", {degree});
    return body.add(to + " = Pow(" + from + ", degree)");
  }
  std::string power = from;
  for (int64_t i = 1; i < static_cast<int64_t>(degree); ++i) {
    std::string next = from + "_" + std::to_string(i + 1);
    body.add(next + " = Mul(" + power + ", " + from + ")");
    power = next;
  }
  body.add(to + " = Identity(" + power + ")");
}

/// `kernels` [rows, count]: the kernel of each row and each of `count` support vectors.
static void applyKernel(FunctionBody &body, int64_t count) {
  std::vector<float> vectors = body.reals("support_vectors"), params = body.reals("kernel_params");
  int64_t features = readRows(body, static_cast<int64_t>(vectors.size()), count);
  params.resize(3, 0);
  std::string kind = body.text("kernel_type");
  body.row("flat", vectors);
  body.constant("vector_sizes", {count, features});
  body.add("vectors = Reshape(flat, vector_sizes)");
  if (kind == "RBF") {
    body.constant("each", {-1, 1, features});
    body.constant("kernel_sizes", {-1, count});
    body.constant("column", {features, 1});
    body.row("ones", std::vector<float>(features, 1));
    body.row("factor", {-params[0]});
    // Sums as a product, which means the same in all opsets.
    return body.add("rows = Reshape(x, each)\nmoved = Sub(rows, vectors)\nsquares = Mul(moved, moved)\n"
                    "ones_column = Reshape(ones, column)\nsums = MatMul(squares, ones_column)\n"
                    "distances = Reshape(sums, kernel_sizes)\nscaled = Mul(distances, factor)\nkernels = Exp(scaled)");
  }
  body.add("columns = Transpose<perm = [1, 0]>(vectors)\ndots = MatMul(x, columns)");
  if (kind == "LINEAR")
    return body.add("kernels = Identity(dots)");
  if (kind != "POLY" && kind != "SIGMOID")
    body.refuse("unsupported kernel_type '" + kind + "'; supported: LINEAR, POLY, RBF, SIGMOID");
  body.row("factor", {params[0]});
  body.row("term", {params[1]});
  body.add("products = Mul(dots, factor)\nargument = Add(products, term)");
  if (kind == "SIGMOID")
    body.add("kernels = Tanh(argument)");
  else
    raise(body, "argument", "kernels", params[2]);
}

/// `to` = `from` [rows, inner] times `weights` [inner, columns], plus a term for each column.
static void multiply(FunctionBody &body, const std::string &from, const std::string &to,
                     const std::vector<float> &weights, const std::vector<float> &terms) {
  int64_t columns = static_cast<int64_t>(terms.size());
  body.row(to + "_flat", weights);
  body.row(to + "_terms", terms);
  body.constant(to + "_sizes", {static_cast<int64_t>(weights.size()) / columns, columns});
  body.add(to + "_weights = Reshape(" + to + "_flat, " + to + "_sizes)\n" + to + " = Gemm(" + from + ", " + to +
           "_weights, " + to + "_terms)");
}

void makeSvmRegressor(FunctionBody &body) {
  int64_t count = body.integer("n_supports");
  std::vector<float> coefficients = body.reals("coefficients"), rho = body.reals("rho");
  if (rho.empty() || coefficients.empty())
    body.refuse("expected coefficients and rho");
  if (std::string kind = body.text("post_transform"); kind != "NONE")
    body.refuse("unsupported post_transform '" + kind + "'; supported: NONE");
  if (count > 0 && static_cast<int64_t>(coefficients.size()) != count)
    body.refuse("expected " + std::to_string(count) + " coefficients, but got " + std::to_string(coefficients.size()));
  if (count > 0)
    applyKernel(body, count);
  else
    readRows(body, static_cast<int64_t>(coefficients.size()), 1);
  multiply(body, count > 0 ? "kernels" : "x", "scores", coefficients, {rho[0]});
  if (body.integer("one_class") == 0)
    return body.add("Y = Identity(scores)");
  body.row("zero", {0});
  body.row("inside", {1});
  body.row("outside", {-1});
  body.add("is_inside = Greater(scores, zero)\nY = Where(is_inside, inside, outside)");
}

namespace {
/// A classifier with a decision for each pair of classes.
struct PairwiseClassifier {
  std::vector<int64_t> perClass;
  int64_t vectors = 0, classes = 0;
  std::vector<float> coefficients, rho; // [classes - 1, vectors]; one for each pair

  int64_t pairs() const { return classes * (classes - 1) / 2; }
};
} // namespace

/// Calls `visit(pair, i, j)` for the classes i < j of each pair.
template <typename Visit> static void forEachPair(const PairwiseClassifier &svm, Visit visit) {
  int64_t pair = 0;
  for (int64_t i = 0; i < svm.classes; ++i)
    for (int64_t j = i + 1; j < svm.classes; ++j)
      visit(pair++, i, j);
}

/// Coefficients [vectors, pairs]: of a pair, those that its classes have against each other; 0 for vectors of other classes.
static std::vector<float> getPairWeights(const PairwiseClassifier &svm) {
  std::vector<int64_t> first(svm.classes, 0);
  std::partial_sum(svm.perClass.begin(), svm.perClass.end() - 1, first.begin() + 1);
  std::vector<float> weights(svm.vectors * svm.pairs(), 0);
  auto take = [&](int64_t pair, int64_t owner, int64_t row) {
    for (int64_t vector = first[owner]; vector < first[owner] + svm.perClass[owner]; ++vector)
      weights[vector * svm.pairs() + pair] = svm.coefficients[row * svm.vectors + vector];
  };
  forEachPair(svm, [&](int64_t pair, int64_t i, int64_t j) {
    take(pair, i, j - 1);
    take(pair, j, i);
  });
  return weights;
}

/// `votes` [rows, classes]: how many pairs each class wins, the first of a pair where its score is greater than 0.
static void countVotes(FunctionBody &body, const PairwiseClassifier &svm) {
  std::vector<float> won(svm.pairs() * svm.classes, 0), lost(svm.classes, 0);
  forEachPair(svm, [&](int64_t pair, int64_t i, int64_t j) {
    won[pair * svm.classes + i] = 1;
    won[pair * svm.classes + j] = -1;
    lost[j] += 1;
  });
  body.row("zero", {0});
  body.add("is_first = Greater(pair_scores, zero)\nfirsts = Cast<to = 1>(is_first)");
  multiply(body, "firsts", "votes", won, lost);
}

/// Two scores for two classes, as onnxruntime has them: of both signs, or the score and what it lacks to 1.
static void finishPair(FunctionBody &body) {
  std::string kind = body.text("post_transform");
  if (kind != "NONE" && kind != "LOGISTIC" && kind != "SOFTMAX")
    body.refuse("unsupported post_transform '" + kind + "'; supported: LOGISTIC, NONE, SOFTMAX");
  body.row("one", {1});
  body.add(kind == "SOFTMAX" ? "other = Sub(one, pair_scores)" : "other = Neg(pair_scores)");
  body.add("both = Concat<axis = 1>(other, pair_scores)");
  body.add(kind == "LOGISTIC" ? "Z = Sigmoid(both)" : "Z = Identity(both)");
}

static void makePairwise(FunctionBody &body, const PairwiseClassifier &svm) {
  applyKernel(body, svm.vectors);
  multiply(body, "kernels", "pair_scores", getPairWeights(svm), svm.rho);
  countVotes(body, svm);
  chooseLabel(body, "classlabels_ints", svm.classes, "votes", "Y");
  if (svm.classes == 2)
    return finishPair(body);
  body.add("scores = Identity(pair_scores)");
  finishScores(body, "Z");
}

/// The label of two classes by the greater of two scores: the second class where that is great enough, whichever it is of.
static void chooseOfTwo(FunctionBody &body, const PairwiseClassifier &svm) {
  bool isPositive =
      std::none_of(svm.coefficients.begin(), svm.coefficients.end(), [](float value) { return value < 0; });
  body.constant("first", {1});
  body.constant("second", {1});
  body.constant("row", {-1});
  body.constant("labels", body.integers("classlabels_ints"));
  body.row("limit", {isPositive ? 0.5f : 0.0f});
  body.add("greatest, at = TopK(scores, first)");
  body.add(isPositive ? "is_less = Less(greatest, limit)\nis_great = Not(is_less)"
                      : "is_great = Greater(greatest, limit)");
  body.add("chosen = Where(is_great, second, at)\nchosen_row = Reshape(chosen, row)\nY = Gather(labels, chosen_row)");
}

/// Without support vectors: a row of coefficients for each class.
static void makeLinear(FunctionBody &body, const PairwiseClassifier &svm) {
  int64_t features = readRows(body, static_cast<int64_t>(svm.coefficients.size()), svm.classes);
  std::vector<float> weights(svm.coefficients.size());
  for (int64_t row = 0; row < svm.classes; ++row)
    for (int64_t feature = 0; feature < features; ++feature)
      weights[feature * svm.classes + row] = svm.coefficients[row * features + feature];
  multiply(body, "x", "scores", weights, std::vector<float>(svm.classes, svm.rho[0]));
  if (svm.classes > 2)
    chooseLabel(body, "classlabels_ints", svm.classes, "scores", "Y");
  else
    chooseOfTwo(body, svm);
  finishScores(body, "Z");
}

void makeSvmClassifier(FunctionBody &body) {
  PairwiseClassifier svm;
  svm.perClass = body.integers("vectors_per_class");
  svm.coefficients = body.reals("coefficients");
  svm.rho = body.reals("rho");
  svm.classes = static_cast<int64_t>(body.integers("classlabels_ints").size());
  for (int64_t count : svm.perClass) {
    auto most = static_cast<int64_t>(svm.coefficients.size());
    if (count < 0 || count > most)
      body.refuse("expected vectors_per_class to be counts of at most " + std::to_string(most) +
                  ", as there are coefficients, but got " + std::to_string(count));
    svm.vectors += count;
  }
  constexpr int64_t kMostClasses = 1 << 10;
  if (svm.classes < 2 || svm.classes > kMostClasses)
    body.refuse("expected 2 to " + std::to_string(kMostClasses) + " labels that are integers, but got " +
                std::to_string(svm.classes));
  if (!body.reals("prob_a").empty())
    body.refuse("unsupported prob_a: probabilities of pairs");
  if (svm.rho.empty() || svm.coefficients.empty())
    body.refuse("expected coefficients and rho");
  if (svm.vectors == 0)
    return makeLinear(body, svm);
  int64_t wanted = (svm.classes - 1) * svm.vectors, given = static_cast<int64_t>(svm.coefficients.size());
  if (static_cast<int64_t>(svm.perClass.size()) != svm.classes)
    body.refuse("expected vectors of " + std::to_string(svm.classes) + " classes, but got those of " +
                std::to_string(svm.perClass.size()));
  if (given < wanted || static_cast<int64_t>(svm.rho.size()) < svm.pairs())
    body.refuse("expected " + std::to_string(wanted) + " coefficients and rho of " + std::to_string(svm.pairs()) +
                " pairs, but got " + std::to_string(given) + " and " + std::to_string(svm.rho.size()));
  svm.rho.resize(svm.pairs());
  makePairwise(body, svm);
}

} // namespace hone::onnxir
