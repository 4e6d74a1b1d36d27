// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons, booleans and selection.

#include "Formula.h"

using namespace mlir;

namespace hone::lowering {

static Value makeBool(Builder &b, bool value) { return arith::ConstantOp::create(b, b.getBoolAttr(value)); }

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

namespace {
enum class Relation { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };
} // namespace

static arith::CmpFPredicate getFloatPredicate(Relation relation) {
  using arith::CmpFPredicate;
  static constexpr CmpFPredicate predicates[] = {CmpFPredicate::OEQ, CmpFPredicate::OLT, CmpFPredicate::OLE,
                                                 CmpFPredicate::OGT, CmpFPredicate::OGE};
  return predicates[static_cast<int>(relation)];
}

static arith::CmpIPredicate getIntegerPredicate(Relation relation, bool isUnsigned) {
  using arith::CmpIPredicate;
  static constexpr CmpIPredicate predicates[][2] = {{CmpIPredicate::eq, CmpIPredicate::eq},
                                                    {CmpIPredicate::slt, CmpIPredicate::ult},
                                                    {CmpIPredicate::sle, CmpIPredicate::ule},
                                                    {CmpIPredicate::sgt, CmpIPredicate::ugt},
                                                    {CmpIPredicate::sge, CmpIPredicate::uge}};
  return predicates[static_cast<int>(relation)][isUnsigned];
}

template <Relation relation>
static LogicalResult lowerComparison(Node &node) {
  Type declared = node.declared(0), compute = getComputeType(declared);
  if (!declared.isIntOrFloat())
    return node.fail() << "unsupported element type " << declared << "; supported: floats, integers and bool";
  bool isUnsigned = node.isUnsigned(0);
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.b.getI1Type(), [&](Builder &b, ValueRange x) -> Value {
    if (isa<FloatType>(declared)) {
      Number l{&b, convertScalar(b, x[0], declared, compute)}, r{&b, convertScalar(b, x[1], declared, compute)};
      return compare(getFloatPredicate(relation), l, r);
    }
    return b.createOrFold<arith::CmpIOp>(getIntegerPredicate(relation, isUnsigned), x[0], x[1]);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Booleans and selection
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult lowerLogical(Node &node) {
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.b.getI1Type(),
                               [](Builder &b, ValueRange x) { return b.createOrFold<Op>(x[0], x[1]); }));
  return success();
}

static LogicalResult lowerNot(Node &node) {
  node.set(0, node.elementwise({node.in(0)}, node.b.getI1Type(), [](Builder &b, ValueRange x) {
    return b.createOrFold<arith::XOrIOp>(x[0], makeBool(b, true));
  }));
  return success();
}

static LogicalResult lowerWhere(Node &node) {
  SmallVector<Value> tensors{node.in(0), node.in(1), node.in(2)};
  node.set(0, node.elementwise(tensors, node.element(1), [](Builder &b, ValueRange x) {
    return b.createOrFold<arith::SelectOp>(x[0], x[1], x[2]);
  }));
  return success();
}

void addLogicLowerings(LoweringTable &table) {
  table["onnx.And"] = lowerLogical<arith::AndIOp>;
  table["onnx.Equal"] = lowerComparison<Relation::Equal>;
  table["onnx.Greater"] = lowerComparison<Relation::Greater>;
  table["onnx.GreaterOrEqual"] = lowerComparison<Relation::GreaterOrEqual>;
  table["onnx.Less"] = lowerComparison<Relation::Less>;
  table["onnx.LessOrEqual"] = lowerComparison<Relation::LessOrEqual>;
  table["onnx.Not"] = lowerNot;
  table["onnx.Or"] = lowerLogical<arith::OrIOp>;
  table["onnx.Where"] = lowerWhere;
  table["onnx.Xor"] = lowerLogical<arith::XOrIOp>;
}

} // namespace hone::lowering
