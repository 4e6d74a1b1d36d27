// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes do with parameters, for who watches: actions of MLIR's context, which cost nothing where nobody handles them.

#ifndef HONE_DIALECT_HONE_PARAMETERACTIONS_H
#define HONE_DIALECT_HONE_PARAMETERACTIONS_H

#include "hone/Dialect/Hone/HoneParams.h"

#include "mlir/IR/Action.h"

#include <optional>

namespace hone {

/// What became of a parameter.
struct ParameterOutcome {
  enum Kind { Left, Changed, Failed } kind = Failed;
  std::string text; // why it was left: "it is no matrix of f32"; or what was done: "is stored in 4 bits an element"
};

/// One parameter of those that `changeParameters` goes through. Before the action the parameter is as it was, afterwards
/// `outcome` says what became of it.
struct ChangeParameterAction : mlir::tracing::ActionImpl<ChangeParameterAction> {
  static constexpr llvm::StringLiteral tag = "hone-change-parameter";

  ChangeParameterAction(llvm::ArrayRef<mlir::IRUnit> units, ParamOp param, const ParameterChange &change, size_t number,
                        size_t count, const ParameterOutcome &outcome)
      : ActionImpl(units), param(param), change(change), number(number), count(count), outcome(outcome) {}

  void print(llvm::raw_ostream &os) const override {
    os << tag << ' ' << change.pass << ' ' << ParamOp(param).getSymName();
  }

  ParamOp param;
  const ParameterChange &change;
  size_t number, count; // which of how many, counted from 0
  const ParameterOutcome &outcome;
};

/// What a pass does about a parameter that may take its time, besides changing it: one of several such steps.
struct VisitParameterAction : mlir::tracing::ActionImpl<VisitParameterAction> {
  static constexpr llvm::StringLiteral tag = "hone-visit-parameter";

  VisitParameterAction(llvm::ArrayRef<mlir::IRUnit> units, ParamOp param, llvm::StringRef pass, size_t number,
                       size_t count)
      : ActionImpl(units), param(param), pass(pass), number(number), count(count) {}

  void print(llvm::raw_ostream &os) const override { os << tag << ' ' << pass << ' ' << ParamOp(param).getSymName(); }

  ParamOp param;
  llvm::StringRef pass;
  size_t number, count; // which of how many, counted from 0
};

/// Does `visit` as such an action.
inline llvm::LogicalResult visitParameter(ParamOp param, llvm::StringRef pass, size_t number, size_t count,
                                          llvm::function_ref<llvm::LogicalResult()> visit) {
  llvm::LogicalResult result = llvm::failure();
  param.getContext()->executeAction<VisitParameterAction>([&] { result = visit(); }, {param.getOperation()}, param,
                                                          pass, number, count);
  return result;
}

/// The measurement of how much a change of a parameter moves the outputs of the layers that multiply with it. Afterwards `error`
/// is that: the root of the mean square of the change over the calibration, relative to that of the outputs.
struct MeasureErrorAction : mlir::tracing::ActionImpl<MeasureErrorAction> {
  static constexpr llvm::StringLiteral tag = "hone-measure-error";

  MeasureErrorAction(llvm::ArrayRef<mlir::IRUnit> units, ParamOp param, const double &error)
      : ActionImpl(units), param(param), error(error) {}

  void print(llvm::raw_ostream &os) const override { os << tag << ' ' << ParamOp(param).getSymName(); }

  ParamOp param;
  const double &error;
};

} // namespace hone

#endif // HONE_DIALECT_HONE_PARAMETERACTIONS_H
