// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of ai.onnx.ml that are a few nodes of other operators: scalers, normalisers, linear models, trees, and selections of columns.
// Support vector machines are in SvmFunctions.cpp. libonnx has their schemas; these are functions for them. Compiled with exceptions, as libonnx reports by them.

#include "MachineLearning.h"

#include <algorithm>
#include <map>
#include <set>

using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

void toFloats(FunctionBody &body, const std::string &to) {
  body.add(to + " = Cast(" + body.name(0) + ")", "to", static_cast<int64_t>(TensorProto::FLOAT));
}

static void makeBinarizer(FunctionBody &body) {
  body.scalar("limit", body.real("threshold"), body.element(0));
  body.add("above = Greater(X, limit)");
  body.add("Y = Cast(above)", "to", static_cast<int64_t>(body.element(0)));
}

/// (X - offset) * scale, each of one element or one a column.
static void makeScaler(FunctionBody &body) {
  toFloats(body, "x");
  std::vector<float> offset = body.reals("offset"), scale = body.reals("scale");
  if (offset.empty() || scale.empty())
    body.refuse("expected offset and scale");
  body.row("offsets", offset);
  body.row("factors", scale);
  body.add("moved = Sub(x, offsets)\nY = Mul(moved, factors)");
}

/// Rows over their norm; a row of zeros stays.
static void makeNormalizer(FunctionBody &body) {
  constexpr int64_t kMostDims = 2; // onnxruntime takes columns of more dimensions for the second
  auto rank = body.rank(0);
  if (!rank || *rank < 1 || *rank > kMostDims)
    body.refuse("expected X to have 1 or 2 dimensions");
  std::string norm = body.text("norm");
  toFloats(body, "x");
  if (norm == "L1" || norm == "L2")
    return body.add("Y = LpNormalization<axis = -1>(x)", "p", static_cast<int64_t>(norm == "L1" ? 1 : 2));
  if (norm != "MAX")
    body.refuse("unsupported norm '" + norm + "'; supported: L1, L2, MAX");
  body.constant("first", {1});
  body.scalar("zero", 0, TensorProto::FLOAT);
  body.scalar("one", 1, TensorProto::FLOAT);
  body.add("greatest, at = TopK(x, first)\nis_zero = Equal(greatest, zero)\ndivisor = Where(is_zero, one, greatest)\n"
           "Y = Div(x, divisor)");
}

/// `scores` = x times coefficients [rows, columns] plus intercepts, of which there may be none.
static void multiply(FunctionBody &body, int64_t rows) {
  std::vector<float> coefficients = body.reals("coefficients"), intercepts = body.reals("intercepts");
  int64_t count = static_cast<int64_t>(coefficients.size());
  if (rows < 1 || count == 0 || count % rows != 0)
    body.refuse("expected coefficients for " + std::to_string(rows) + " rows, but got " + std::to_string(count));
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)
    body.refuse("expected " + std::to_string(rows) + " intercepts, but got " + std::to_string(intercepts.size()));
  if (intercepts.empty())
    intercepts.assign(rows, 0);
  toFloats(body, "x");
  body.row("flat", coefficients);
  body.constant("sizes", {rows, count / rows});
  body.row("terms", intercepts);
  body.add("matrix = Reshape(flat, sizes)\nscores = Gemm<transB = 1>(x, matrix, terms)");
}

void finishScores(FunctionBody &body, const std::string &to) {
  std::string kind = body.text("post_transform");
  if (kind == "NONE")
    body.add(to + " = Identity(scores)");
  else if (kind == "LOGISTIC")
    body.add(to + " = Sigmoid(scores)");
  else if (kind == "SOFTMAX")
    body.add(to + " = Softmax<axis = -1>(scores)");
  else
    body.refuse("unsupported post_transform '" + kind + "'; supported: LOGISTIC, NONE, SOFTMAX");
}

static void makeLinearRegressor(FunctionBody &body) {
  multiply(body, body.integer("targets"));
  finishScores(body, "Y");
}

void chooseLabel(FunctionBody &body, const char *attribute, int64_t count, const std::string &scores,
                 const std::string &label) {
  std::vector<int64_t> labels = body.integers(attribute);
  if (labels.empty())
    body.refuse("expected labels to be integers");
  if (static_cast<int64_t>(labels.size()) != count)
    body.refuse("expected a score for each of " + std::to_string(labels.size()) + " labels, but got " +
                std::to_string(count));
  body.constant("labels", labels);
  body.add("best = ArgMax<axis = -1, keepdims = 0>(" + scores + ")\n" + label + " = Gather(labels, best)");
}

static void makeLinearClassifier(FunctionBody &body) {
  int64_t count = static_cast<int64_t>(body.reals("intercepts").size());
  multiply(body, count);
  chooseLabel(body, "classlabels_ints", count, "scores", "Y");
  finishScores(body, "Z");
}

/// Columns of X, by their numbers in Y.
static void makeArrayFeatureExtractor(FunctionBody &body) {
  auto rank = body.rank(0);
  if (!rank || *rank < 1)
    body.refuse("expected the number of dimensions of X to be known");
  body.constant("all", {-1});
  if (*rank == 1) {
    body.constant("row", {1, -1});
    body.add("numbers = Reshape(Y, all)\ncolumns = Gather(X, numbers)\nZ = Reshape(columns, row)");
  } else {
    body.add("numbers = Reshape(Y, all)\nZ = Gather<axis = -1>(X, numbers)");
  }
}

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

namespace {

/// Trees as arrays over all nodes of all trees: where each node goes, a leaf to itself.
struct Trees {
  std::vector<int64_t> roots, features, whenTrue, whenFalse;
  std::vector<float> thresholds;
  std::string mode;           // of all nodes but leaves
  std::vector<bool> branches; // of each node, whether it is none of the leaves
  int64_t depth = 0;
  bool isBranch(size_t node) const { return branches[node]; }
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers; // of (tree, node)
};

} // namespace

/// The roots, which no node leads to, and the depth; refused unless each node is reached in one way.
static void measure(FunctionBody &body, Trees &trees) {
  constexpr int64_t kMostLevels = 1024; // each is a few nodes
  size_t count = trees.features.size(), reached = 0;
  std::vector<bool> isBelow(count, false);
  for (size_t i = 0; i < count; ++i)
    if (trees.isBranch(i))
      isBelow[trees.whenTrue[i]] = isBelow[trees.whenFalse[i]] = true;
  std::vector<std::pair<int64_t, int64_t>> pending;
  for (size_t i = 0; i < count; ++i)
    if (!isBelow[i]) {
      trees.roots.push_back(static_cast<int64_t>(i));
      pending.emplace_back(i, 0);
    }
  while (!pending.empty() && reached <= count) {
    auto [at, level] = pending.back();
    pending.pop_back();
    ++reached;
    trees.depth = std::max(trees.depth, level);
    if (trees.isBranch(at))
      pending.insert(pending.end(), {{trees.whenTrue[at], level + 1}, {trees.whenFalse[at], level + 1}});
  }
  if (reached != count)
    body.refuse("expected trees, but a node is reached in several ways or in none");
  if (trees.depth > kMostLevels)
    body.refuse("unsupported trees of more than " + std::to_string(kMostLevels) + " levels");
}

static Trees readTrees(FunctionBody &body) {
  static const std::set<std::string> kModes = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"};
  Trees trees;
  auto owners = body.integers("nodes_treeids"), ids = body.integers("nodes_nodeids"),
       yes = body.integers("nodes_truenodeids"), no = body.integers("nodes_falsenodeids");
  auto modes = body.texts("nodes_modes");
  trees.features = body.integers("nodes_featureids");
  trees.thresholds = body.reals("nodes_values");
  size_t count = owners.size();
  for (size_t size : {ids.size(), yes.size(), no.size(), modes.size(), trees.features.size(), trees.thresholds.size()})
    if (size != count || count == 0)
      body.refuse("expected attributes of " + std::to_string(count) + " nodes, but got some of " +
                  std::to_string(size));
  for (int64_t tracks : body.integers("nodes_missing_value_tracks_true"))
    if (tracks)
      body.refuse("unsupported nodes_missing_value_tracks_true 1; supported: 0");
  for (size_t i = 0; i < count; ++i)
    trees.numbers.emplace(std::pair(owners[i], ids[i]), static_cast<int64_t>(i));
  auto find = [&](size_t of, int64_t id) {
    auto found = trees.numbers.find({owners[of], id});
    if (found == trees.numbers.end())
      body.refuse("expected tree " + std::to_string(owners[of]) + " to have a node " + std::to_string(id));
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    bool isLeaf = modes[i] == "LEAF";
    if (!isLeaf && !kModes.count(modes[i]))
      body.refuse("unsupported mode '" + modes[i] + "'; supported: BRANCH_GT, BRANCH_GTE, BRANCH_LEQ, BRANCH_LT, LEAF");
    if (!isLeaf && !trees.mode.empty() && trees.mode != modes[i])
      body.refuse("unsupported nodes of different modes");
    if (!isLeaf)
      trees.mode = modes[i];
    trees.branches.push_back(!isLeaf);
    trees.whenTrue.push_back(isLeaf ? static_cast<int64_t>(i) : find(i, yes[i]));
    trees.whenFalse.push_back(isLeaf ? static_cast<int64_t>(i) : find(i, no[i]));
  }
  measure(body, trees);
  return trees;
}

/// `to` = whether `value` is on that side of `threshold` where `mode` branches, of operators that all opsets have.
static void compare(FunctionBody &body, const std::string &mode, const std::string &value, const std::string &threshold,
                    const std::string &to) {
  std::string operands = "(" + value + ", " + threshold + ")", side = mode[7] == 'L' ? " = Less" : " = Greater";
  if (mode == "BRANCH_LT" || mode == "BRANCH_GT")
    return body.add(to + side + operands);
  body.add(to + "_beyond" + side + operands + "\n" + to + "_at = Equal" + operands + "\n" + to + " = Or(" + to +
           "_beyond, " + to + "_at)");
}

/// `leaves` [rows, trees]: where each row of X ends in each tree.
static void descend(FunctionBody &body, const Trees &trees) {
  if (body.element(0) != TensorProto::FLOAT || body.rank(0) != 2)
    body.refuse("expected X to be floats of 2 dimensions");
  body.constant("roots", trees.roots);
  body.constant("features", trees.features);
  body.row("thresholds", trees.thresholds);
  body.constant("when_true", trees.whenTrue);
  body.constant("when_false", trees.whenFalse);
  body.constant("all_roots", {static_cast<int64_t>(trees.roots.size())});
  body.constant("from_rows", {0});
  // Each row begins at all roots.
  body.add("X_shape = Shape(X)\nrows = Gather(X_shape, from_rows)\nrows_roots = Concat<axis = 0>(rows, all_roots)\n"
           "at0 = Expand(roots, rows_roots)");
  for (int64_t level = 0; level < trees.depth; ++level) {
    std::string n = std::to_string(level), next = std::to_string(level + 1);
    body.add("feature" + n + " = Gather(features, at" + n + ")\nvalue" + n + " = GatherElements<axis = 1>(X, feature" +
             n + ")\nthreshold" + n + " = Gather(thresholds, at" + n + ")\nyes" + n + " = Gather(when_true, at" + n +
             ")\nno" + n + " = Gather(when_false, at" + n + ")");
    compare(body, trees.mode, "value" + n, "threshold" + n, "holds" + n);
    body.add("at" + next + " = Where(holds" + n + ", yes" + n + ", no" + n + ")");
  }
  body.add("leaves = Identity(at" + std::to_string(trees.depth) + ")");
}

/// `scores` [rows, count] = sums of what the leaves give; attributes of that begin with `prefix`.
static void addLeaves(FunctionBody &body, const Trees &trees, const std::string &prefix, int64_t count) {
  auto owners = body.integers((prefix + "_treeids").c_str()), nodes = body.integers((prefix + "_nodeids").c_str()),
       ids = body.integers((prefix + "_ids").c_str());
  auto weights = body.reals((prefix + "_weights").c_str());
  auto base = body.reals("base_values");
  constexpr int64_t kMostWeights = int64_t{1} << 26; // a table of leaves and classes of 256 MiB
  int64_t all = static_cast<int64_t>(trees.features.size());
  if (count < 1 || count > kMostWeights / all)
    body.refuse("expected fewer scores than " + std::to_string(count) + " a leaf");
  if (nodes.size() != owners.size() || ids.size() != owners.size() || weights.size() != owners.size())
    body.refuse("expected as many weights as leaves that have them");
  if (!base.empty() && static_cast<int64_t>(base.size()) != count)
    body.refuse("expected " + std::to_string(count) + " base values, but got " + std::to_string(base.size()));
  std::vector<float> table(all * count, 0);
  for (size_t i = 0; i < owners.size(); ++i) {
    auto found = trees.numbers.find({owners[i], nodes[i]});
    if (found == trees.numbers.end() || ids[i] < 0 || ids[i] >= count)
      body.refuse("expected a weight of a node that there is");
    table[found->second * count + ids[i]] += weights[i];
  }
  base.resize(count, 0);
  body.row("flat", table);
  body.constant("sizes", {all, count});
  body.row("base", base);
  body.row("ones", std::vector<float>(trees.roots.size(), 1));
  body.constant("trees_row", {1, static_cast<int64_t>(trees.roots.size())});
  body.constant("score_row", {-1, count});
  // The sum over trees as a product, which means the same in all opsets.
  body.add("table = Reshape(flat, sizes)\ngiven = Gather(table, leaves)\nones_row = Reshape(ones, trees_row)\n"
           "sums = MatMul(ones_row, given)\nsum_rows = Reshape(sums, score_row)\nscores = Add(sum_rows, base)");
}

static void makeTreeEnsembleRegressor(FunctionBody &body) {
  if (std::string kind = body.text("aggregate_function"); kind != "SUM")
    body.refuse("unsupported aggregate_function '" + kind + "'; supported: SUM");
  Trees trees = readTrees(body);
  descend(body, trees);
  addLeaves(body, trees, "target", body.integer("n_targets"));
  finishScores(body, "Y");
}

/// Two classes of which the leaves weigh one: what they give is the score of the second, as onnxruntime reads it. Weights of one sign are
/// shares of 1, others lie around 0.
static void chooseOfTwo(FunctionBody &body, const Trees &trees) {
  auto weights = body.reals("class_weights");
  bool areShares = std::none_of(weights.begin(), weights.end(), [](float weight) { return weight < 0; });
  std::string kind = body.text("post_transform");
  if (body.reals("base_values").size() > 1)
    body.refuse("unsupported base values of both of two classes, of which one has weights");
  if (kind != "NONE" && kind != "LOGISTIC")
    body.refuse("unsupported post_transform '" + kind +
                "' of weights for one of two classes; supported: LOGISTIC, NONE");
  addLeaves(body, trees, "class", 1);
  body.constant("labels", body.integers("classlabels_int64s"));
  body.constant("all", {-1});
  body.scalar("limit", areShares ? 0.5f : 0.0f, TensorProto::FLOAT);
  body.add("is_second = Greater(scores, limit)");
  body.add("best_column = Cast(is_second)", "to", static_cast<int64_t>(TensorProto::INT64));
  body.add("best = Reshape(best_column, all)\nY = Gather(labels, best)");
  if (areShares) {
    body.scalar("whole", 1, TensorProto::FLOAT);
    body.add("first = Sub(whole, scores)\nsecond = Identity(scores)");
  } else if (kind == "LOGISTIC") {
    body.add("opposite = Neg(scores)\nfirst = Sigmoid(opposite)\nsecond = Sigmoid(scores)");
  } else {
    body.add("first = Neg(scores)\nsecond = Identity(scores)");
  }
  body.add("Z = Concat<axis = 1>(first, second)");
}

static void makeTreeEnsembleClassifier(FunctionBody &body) {
  int64_t count = static_cast<int64_t>(body.integers("classlabels_int64s").size());
  auto ids = body.integers("class_ids");
  std::set<int64_t> weighed(ids.begin(), ids.end());
  if (count == 2 && weighed == std::set<int64_t>{1})
    body.refuse("unsupported weights for the second of two classes alone");
  Trees trees = readTrees(body);
  descend(body, trees);
  if (count == 2 && weighed.size() < 2)
    return chooseOfTwo(body, trees);
  addLeaves(body, trees, "class", count);
  chooseLabel(body, "classlabels_int64s", count, "scores", "Y");
  finishScores(body, "Z");
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void registerMachineLearningFunctions() {
  static constexpr const char *kDomain = "ai.onnx.ml";
  static constexpr struct {
    const char *name;
    int version;
    FunctionMaker make;
  } kFunctions[] = {{"ArrayFeatureExtractor", 1, makeArrayFeatureExtractor},
                    {"Binarizer", 1, makeBinarizer},
                    {"LinearClassifier", 1, makeLinearClassifier},
                    {"LinearRegressor", 1, makeLinearRegressor},
                    {"Normalizer", 1, makeNormalizer},
                    {"SVMClassifier", 1, makeSvmClassifier},
                    {"SVMRegressor", 1, makeSvmRegressor},
                    {"Scaler", 1, makeScaler},
                    {"TreeEnsembleClassifier", 1, makeTreeEnsembleClassifier},
                    {"TreeEnsembleClassifier", 3, makeTreeEnsembleClassifier},
                    {"TreeEnsembleRegressor", 1, makeTreeEnsembleRegressor},
                    {"TreeEnsembleRegressor", 3, makeTreeEnsembleRegressor}};
  for (const auto &[name, version, make] : kFunctions)
    if (const OpSchema *schema = ::onnx::OpSchemaRegistry::Schema(name, version, kDomain)) {
      OpSchema copy = withFunction(*schema, make);
      ::onnx::DeregisterSchema(name, version, kDomain);
      ::onnx::RegisterSchema(std::move(copy), 0, false);
    }
}

} // namespace hone::onnxir
