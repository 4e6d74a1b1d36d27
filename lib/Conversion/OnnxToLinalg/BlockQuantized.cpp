// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// onnxruntime's operators on weights quantized in blocks: MatMulNBits and GatherBlockQuantized.

#include "Indices.h"
#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// Elements of `bits` bits packed into bytes, the first in the lowest bits.
struct Packing {
  int64_t bits;

  int64_t perByte() const { return 8 / bits; }
  /// Element `position` of the row whose indices are `row` and whose last dimension is bytes, as f32.
  Value read(Builder &b, Value bytes, SmallVector<Value> row, Value position) const;
};

} // namespace

static Value divide(Builder &b, Value value, int64_t by) {
  return by == 1 ? value : Value(arith::DivUIOp::create(b, value, arith::ConstantIndexOp::create(b, by)));
}

static Value remainder(Builder &b, Value value, int64_t by) {
  return arith::RemUIOp::create(b, value, arith::ConstantIndexOp::create(b, by));
}

Value Packing::read(Builder &b, Value bytes, SmallVector<Value> row, Value position) const {
  row.push_back(divide(b, position, perByte()));
  Value byte = tensor::ExtractOp::create(b, bytes, row);
  if (bits < 8) {
    Value shift = arith::MulIOp::create(b, remainder(b, position, perByte()), arith::ConstantIndexOp::create(b, bits));
    byte = arith::ShRUIOp::create(b, byte, arith::IndexCastOp::create(b, b.getI8Type(), shift));
    Value mask = arith::ConstantOp::create(b, b.getI8IntegerAttr((1 << bits) - 1));
    byte = arith::AndIOp::create(b, byte, mask);
  }
  return arith::UIToFPOp::create(b, b.getF32Type(), byte);
}

static int64_t getBytes(int64_t elements, int64_t bits) { return llvm::divideCeil(elements * bits, 8); }

/// `tensor` with the given fixed sizes; failure if it has another number of elements.
static FailureOr<Value> reshapeTo(Node &node, Value tensor, ArrayRef<int64_t> shape, StringRef what) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t count = ShapedType::getNumElements(shape);
  if (!type.hasStaticShape() || type.getNumElements() != count) {
    node.fail() << "expected " << what << " to have " << count << " elements, but got " << type;
    return failure();
  }
  SmallVector<Size> sizes;
  for (int64_t size : shape)
    sizes.push_back(node.b.getIndexAttr(size));
  return node.reshape(tensor, sizes);
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

namespace {

/// The weight of a MatMulNBits: N rows of K elements in blocks of `block`.
struct BlockedWeight {
  int64_t rows, columns, block;
  Packing packing;
  Value bytes;  // [N, blocks, bytes of a block]
  Value scales; // [N, blocks]
  Value zeros;  // [N, blocks] of floats, [N, bytes] packed, or null
  Value groups; // [K]: the block whose scale a column has, or null

  int64_t blocks() const { return llvm::divideCeil(columns, block); }
  Value read(Builder &b, Value row, Value column) const;
};

} // namespace

Value BlockedWeight::read(Builder &b, Value row, Value column) const {
  Value blockOfBytes = divide(b, column, block), group = blockOfBytes;
  if (groups)
    group = arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, groups, column));
  Value quantized = packing.read(b, bytes, {row, blockOfBytes}, remainder(b, column, block));
  Value scale = tensor::ExtractOp::create(b, scales, ValueRange{row, group});
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(1 << (packing.bits - 1)));
  if (zeros && isa<FloatType>(cast<RankedTensorType>(zeros.getType()).getElementType()))
    zero = convertFloat(b, tensor::ExtractOp::create(b, zeros, ValueRange{row, group}), b.getF32Type());
  else if (zeros)
    zero = packing.read(b, zeros, {row}, group);
  Value wide =
      arith::MulFOp::create(b, arith::SubFOp::create(b, quantized, zero), convertFloat(b, scale, b.getF32Type()));
  return convertFloat(b, wide, scale.getType());
}

static FailureOr<BlockedWeight> getBlockedWeight(Node &node) {
  BlockedWeight weight{
      node.integer("N"), node.integer("K"), node.integer("block_size", 32), {node.integer("bits", 4)}, {}, {}, {},
      node.in(4)};
  int64_t bits = weight.packing.bits;
  if (bits != 2 && bits != 4 && bits != 8) {
    node.fail() << "unsupported number of bits " << bits << "; supported: 2, 4, 8";
    return failure();
  }
  if (weight.block < weight.packing.perByte() || weight.rows < 1 || weight.columns < 1) {
    node.fail() << "expected N, K and block_size to be positive, but got " << weight.rows << ", " << weight.columns
                << " and " << weight.block;
    return failure();
  }
  int64_t rows = weight.rows, blocks = weight.blocks();
  auto bytes = reshapeTo(node, node.in(1), {rows, blocks, getBytes(weight.block, bits)}, "B");
  auto scales = reshapeTo(node, node.in(2), {rows, blocks}, "the scales");
  if (failed(bytes) || failed(scales))
    return failure();
  weight.bytes = *bytes;
  weight.scales = *scales;
  if (node.has(3)) {
    bool isFloat = isa<FloatType>(node.element(3));
    auto zeros = reshapeTo(node, node.in(3), {rows, isFloat ? blocks : getBytes(blocks, bits)}, "the zero points");
    if (failed(zeros))
      return failure();
    weight.zeros = *zeros;
  }
  return weight;
}

/// A times the transpose of the dequantized weight, plus bias. accuracy_level is the least accuracy of A, which stays as it is.
static LogicalResult lowerMatMulNBits(Node &node) {
  auto weight = getBlockedWeight(node);
  if (failed(weight))
    return failure();
  Value dense = node.generate({node.b.getIndexAttr(weight->rows), node.b.getIndexAttr(weight->columns)},
                              cast<RankedTensorType>(weight->scales.getType()).getElementType(),
                              [&](Builder &b, ValueRange at) { return weight->read(b, at[0], at[1]); });
  auto product = applyLinear(node, node.in(0), convertFloats(node, dense, node.element(0)), node.in(5));
  if (failed(product))
    return failure();
  node.set(0, *product);
  return success();
}

//===----------------------------------------------------------------------===//
// GatherBlockQuantized
//===----------------------------------------------------------------------===//

namespace {

/// The operands of a GatherBlockQuantized. Elements are packed along the last dimension where they are bytes; int4 and
/// uint4 tensors have an element of their own.
struct BlockedTable {
  int64_t gatherAxis, quantizeAxis, block, bits;
  Value data, scales, zeros;
  bool isPacked, isUnsigned;

  Value readQuantized(Builder &b, Value tensor, ArrayRef<Value> at) const;
  Value read(Builder &b, ArrayRef<Value> at) const;
};

} // namespace

/// An element, or for packed bytes the element at the position `at` of the last dimension, as f32.
Value BlockedTable::readQuantized(Builder &b, Value tensor, ArrayRef<Value> at) const {
  if (isPacked)
    return Packing{bits}.read(b, tensor, SmallVector<Value>(at.drop_back()), at.back());
  Value element = tensor::ExtractOp::create(b, tensor, at);
  if (isUnsigned)
    return arith::UIToFPOp::create(b, b.getF32Type(), element);
  return arith::SIToFPOp::create(b, b.getF32Type(), element);
}

Value BlockedTable::read(Builder &b, ArrayRef<Value> at) const {
  SmallVector<Value> group(at);
  group[quantizeAxis] = divide(b, at[quantizeAxis], block);
  Value quantized = readQuantized(b, data, at);
  Value scale = tensor::ExtractOp::create(b, scales, group);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(isPacked ? 1 << (bits - 1) : 0));
  if (zeros)
    zero = readQuantized(b, zeros, group);
  Value wide =
      arith::MulFOp::create(b, arith::SubFOp::create(b, quantized, zero), convertFloat(b, scale, b.getF32Type()));
  return convertFloat(b, wide, scale.getType());
}

/// `sizes` are those of the unpacked elements: a block has a scale, and a zero point, which are packed as elements are.
static LogicalResult checkBlocks(Node &node, const BlockedTable &table, SmallVector<Size> sizes) {
  Size &blocks = sizes[table.quantizeAxis];
  blocks = node.math.ceilDiv(blocks, node.b.getIndexAttr(table.block));
  if (failed(requireShape(node, table.scales, sizes, "scales", "those of data, in blocks")))
    return failure();
  if (table.isPacked)
    sizes.back() = node.math.ceilDiv(sizes.back(), node.b.getIndexAttr(8 / table.bits));
  return table.zeros ? requireShape(node, table.zeros, sizes, "zero_points", "those of scales, packed") : success();
}

/// Rows of a table that is dequantized as it is read; a negative index counts from the end.
static LogicalResult lowerGatherBlockQuantized(Node &node) {
  auto gather = node.axis(node.integer("gather_axis", 0), node.rank(0));
  auto quantize = node.axis(node.integer("quantize_axis", 1), node.rank(0));
  if (failed(gather) || failed(quantize))
    return failure();
  bool isPacked = node.element(0).isInteger(8);
  BlockedTable table{*gather,
                     *quantize,
                     node.integer("block_size", 128),
                     isPacked ? node.integer("bits", 4) : 8,
                     node.in(0),
                     node.in(2),
                     node.in(3),
                     isPacked,
                     node.isUnsigned(0)};
  if ((table.bits != 4 && table.bits != 8) || table.block < 1)
    return node.fail() << "unsupported bits " << table.bits << " with block_size " << table.block
                       << "; supported: 4, 8 and positive blocks";
  SmallVector<Size> sizes = node.sizes(node.in(0)), indexSizes = node.sizes(node.in(1)), results;
  if (isPacked)
    sizes.back() = node.math.mul(sizes.back(), node.b.getIndexAttr(8 / table.bits));
  if (failed(checkBlocks(node, table, sizes)))
    return failure();
  results.append(sizes.begin(), sizes.begin() + *gather);
  results.append(indexSizes);
  results.append(sizes.begin() + *gather + 1, sizes.end());
  checkIndices(node, 1, sizes[*gather]);
  Value rows = node.math.value(sizes[*gather]), indices = node.in(1);
  size_t indexRank = indexSizes.size();
  node.set(0, node.generate(results, node.element(2), [&](Builder &b, ValueRange at) {
    Value row = tensor::ExtractOp::create(b, indices, at.slice(*gather, indexRank));
    row = arith::IndexCastOp::create(b, b.getIndexType(), row);
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, arith::ConstantIndexOp::create(b, 0));
    row = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, row, rows), row);
    SmallVector<Value> from(at.take_front(*gather));
    from.push_back(row);
    llvm::append_range(from, at.drop_front(*gather + indexRank));
    return table.read(b, from);
  }));
  return success();
}

void addBlockQuantizedLowerings(LoweringTable &table) {
  table["onnx.com.microsoft.MatMulNBits"] = lowerMatMulNBits;
  table["onnx.com.microsoft.GatherBlockQuantized"] = lowerGatherBlockQuantized;
}

} // namespace hone::lowering
