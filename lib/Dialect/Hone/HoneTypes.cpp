//===- HoneTypes.cpp - types and attributes of the hone dialect -------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the generated definitions need; encodings and patterns have their own files.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hone;

#include "hone/Dialect/Hone/HoneEnums.cpp.inc"
#include "hone/Dialect/Hone/HoneInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hone/Dialect/Hone/HoneTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "hone/Dialect/Hone/HoneAttributes.cpp.inc"

void HoneDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "hone/Dialect/Hone/HoneTypes.cpp.inc"
      >();
}

void HoneDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hone/Dialect/Hone/HoneAttributes.cpp.inc"
      >();
}

LogicalResult SlotAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef name,
                               RankedTensorType type, std::optional<int64_t> axis, FlatSymbolRefAttr beginning) {
  if (name.empty()) // slot C1
    return emitError() << "expected the name of a slot not to be empty";
  if (!axis)
    return success();
  if (*axis < 0 || *axis >= type.getRank()) // slot C2
    return emitError() << "expected the axis of slot '" << name << "' to be a dimension of " << type << ", but got "
                       << *axis;
  if (!type.isDynamicDim(*axis)) // slot C3
    return emitError() << "expected dimension " << *axis << " of slot '" << name << "' to be dynamic, but got " << type;
  if (beginning) // slot C4
    return emitError() << "expected slot '" << name << "', which grows, to begin without positions, but got "
                       << beginning;
  return success();
}
