// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TfIdfVectorizer: how often n-grams of a pool occur in rows of integers. For each length of n-grams, all places of a row are compared with
// all of them; their counts are then added up where the pool says.

#include "Formula.h"
#include "Indices.h"
#include "Loops.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// The n-grams of one length, each with the column of the result that counts it.
struct Grams {
  int64_t length = 0;
  SmallVector<int64_t> words, columns;

  int64_t count() const { return std::ssize(columns); }
};

struct Vocabulary {
  SmallVector<Grams> grams;
  int64_t columns = 0;
};

} // namespace

/// The n-grams of lengths that the node asks for. Of equal ones the last counts.
static void addGrams(ArrayRef<int64_t> words, ArrayRef<int64_t> columns, int64_t length, Vocabulary &vocabulary) {
  llvm::MapVector<ArrayRef<int64_t>, int64_t> last;
  for (auto [i, column] : llvm::enumerate(columns))
    last[words.slice(i * length, length)] = column;
  Grams grams;
  grams.length = length;
  for (auto &[gram, column] : last) {
    grams.words.append(gram.begin(), gram.end());
    grams.columns.push_back(column);
  }
  if (grams.count() > 0)
    vocabulary.grams.push_back(std::move(grams));
}

static FailureOr<Vocabulary> readVocabulary(Node &node) {
  auto pool = node.integers("pool_int64s"), begins = node.integers("ngram_counts"),
       columns = node.integers("ngram_indexes");
  if (!pool || !begins || !columns || columns->empty()) {
    node.fail() << "expected pool_int64s, ngram_counts and ngram_indexes; strings are not supported";
    return failure();
  }
  Vocabulary vocabulary;
  for (int64_t column : *columns) {
    if (column < 0 || column >= std::numeric_limits<int32_t>::max()) {
      node.fail() << "expected ngram_indexes from 0 to 2^31 - 2, but got " << column;
      return failure();
    }
    vocabulary.columns = std::max(vocabulary.columns, column + 1);
  }
  int64_t least = node.integer("min_gram_length"), most = node.integer("max_gram_length");
  size_t used = 0;
  for (size_t i = 0; i < begins->size(); ++i) {
    int64_t begin = (*begins)[i], end = i + 1 < begins->size() ? (*begins)[i + 1] : std::ssize(*pool);
    auto length = static_cast<int64_t>(i) + 1;
    int64_t count = (end - begin) / length;
    if (begin < 0 || end < begin || end > std::ssize(*pool) || (end - begin) % length != 0 ||
        used + count > columns->size()) {
      node.fail() << "expected ngram_counts to divide pool_int64s into n-grams, each with one of ngram_indexes";
      return failure();
    }
    if (length >= least && length <= most)
      addGrams(ArrayRef(*pool).slice(begin, end - begin), ArrayRef(*columns).slice(used, count), length, vocabulary);
    used += count;
  }
  return vocabulary;
}

static Value makeTable(Builder &b, ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
  return arith::ConstantOp::create(b, DenseIntElementsAttr::get(RankedTensorType::get(shape, b.getI64Type()), values));
}

/// `[rows, n-grams]`: the number of places where the words of an n-gram stand `skip + 1` apart, for each skip below `skips`.
static Value countGrams(Node &node, Value rows, const Grams &grams, int64_t skips) {
  Builder &b = node.b;
  SmallVector<Size> sizes = node.sizes(rows);
  Value length = node.math.value(sizes[1]);
  Value words = makeTable(b, {grams.count(), grams.length}, grams.words);
  Type f32 = b.getF32Type();
  return accumulate(node, {sizes[0], b.getIndexAttr(grams.count())}, {b.getIndexAttr(skips), sizes[1]}, {},
                    node.zero(f32), [&](Builder &b, ValueRange, Value total) -> Value {
                      Value row = linalg::IndexOp::create(b, 0), gram = linalg::IndexOp::create(b, 1);
                      Value skip = linalg::IndexOp::create(b, 2), place = linalg::IndexOp::create(b, 3);
                      Value one = arith::ConstantIndexOp::create(b, 1);
                      Value step = arith::AddIOp::create(b, skip, one), last = arith::SubIOp::create(b, length, one);
                      Value isEqual = arith::ConstantOp::create(b, b.getBoolAttr(true));
                      for (int64_t i = 0; i < grams.length; ++i) {
                        Value word = arith::ConstantIndexOp::create(b, i);
                        Value at = arith::AddIOp::create(b, place, arith::MulIOp::create(b, word, step));
                        Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, at, last);
                        Value read = tensor::ExtractOp::create(
                            b, rows, ValueRange{row, arith::MinSIOp::create(b, at, last).getResult()});
                        Value wanted = tensor::ExtractOp::create(b, words, ValueRange{gram, word});
                        Value isSame = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, read, wanted);
                        isEqual = arith::AndIOp::create(b, isEqual, arith::AndIOp::create(b, isInside, isSame));
                      }
                      return arith::AddFOp::create(b, total, arith::UIToFPOp::create(b, f32, isEqual));
                    });
}

/// Adds the counts of n-grams to their columns of `[rows, columns]`.
static Value addCounts(Node &node, Value result, Value counts, const Grams &grams) {
  Value columns = makeTable(node.b, grams.count(), grams.columns);
  SmallVector<Size> sizes = node.sizes(result);
  Value sum = loopNest(
      node, node.sizes(counts), result, [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        Value column = arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, columns, at[1]));
        SmallVector<Value> to = {at[0], column};
        Value old = tensor::ExtractOp::create(b, carried[0], to), count = tensor::ExtractOp::create(b, counts, at);
        return {tensor::InsertOp::create(b, arith::AddFOp::create(b, old, count), carried[0], to)};
      })[0];
  node.lowerer.setSizes(sum, sizes);
  return sum;
}

/// What a mode makes of counts; `weights` are those of columns.
static FailureOr<Value> weigh(Node &node, Value counts, StringRef mode) {
  if (mode == "TF")
    return counts;
  if (mode != "IDF" && mode != "TFIDF")
    return node.fail() << "unsupported mode '" << mode << "'; supported: TF, IDF, TFIDF";
  SmallVector<Size> sizes = node.sizes(counts);
  int64_t columns = *IndexMath::getConstant(sizes[1]);
  auto given = node.reals("weights");
  SmallVector<float> weights = given && !given->empty() ? *given : SmallVector<float>(columns, 1.0F);
  if (std::ssize(weights) < columns)
    return node.fail() << "expected weights for " << columns << " columns, but got " << weights.size();
  weights.truncate(columns);
  Type f32 = node.b.getF32Type();
  Value table = arith::ConstantOp::create(
      node.b, DenseFPElementsAttr::get(RankedTensorType::get(columns, f32), ArrayRef<float>(weights)));
  bool isCapped = mode == "IDF";
  return node.elementwiseOver(sizes, {counts, table}, f32, [&](Builder &b, ValueRange x) {
    Number count{&b, x[0]}, weight{&b, x[1]};
    return ((isCapped ? min(count, count.with(1)) : count) * weight).value;
  });
}

static LogicalResult lowerTfIdfVectorizer(Node &node) {
  int64_t rank = node.rank(0), skips = node.integer("max_skip_count");
  if (rank != 1 && rank != 2)
    return node.fail() << "expected an input of one or two dimensions, but got " << node.type(0);
  if (skips < 0 || skips >= std::numeric_limits<int32_t>::max())
    return node.fail() << "expected max_skip_count from 0 to 2^31 - 2, but got " << skips;
  auto vocabulary = readVocabulary(node);
  if (failed(vocabulary))
    return failure();
  Builder &b = node.b;
  Type f32 = b.getF32Type();
  SmallVector<Size> sizes = node.sizes(node.in(0));
  Size rowCount = rank == 2 ? sizes[0] : Size(b.getIndexAttr(1)), columns = b.getIndexAttr(vocabulary->columns);
  if (failed(node.lowerer.requireSizes(node.op, {rowCount, columns}, f32)))
    return failure();
  Value rows = node.reshape(node.castElements(node.in(0), b.getI64Type(), false, false), {rowCount, sizes.back()});
  Value result = node.filled({rowCount, columns}, node.zero(f32));
  for (const Grams &grams : vocabulary->grams) // one word is not skipped
    result = addCounts(node, result, countGrams(node, rows, grams, grams.length == 1 ? 1 : skips + 1), grams);
  auto weighted = weigh(node, result, node.string("mode"));
  if (failed(weighted))
    return failure();
  node.set(0, rank == 2 ? *weighted : node.reshape(*weighted, columns));
  return success();
}

void addNGramLowerings(LoweringTable &table) { table["onnx.TfIdfVectorizer"] = lowerTfIdfVectorizer; }

} // namespace hone::lowering
