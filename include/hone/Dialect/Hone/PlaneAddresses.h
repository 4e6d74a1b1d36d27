//===- PlaneAddresses.h - planes whose elements are places --------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels, generated code and unpacking read and write where elements of some planes say: they are checked before, in the compiler where
// planes are opened (ParamBytes.h), and in the runtime when an artefact is loaded.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_PLANEADDRESSES_H
#define HONE_DIALECT_HONE_PLANEADDRESSES_H

#include "hone/runtime/signature.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace hone {

/// What elements have to be that are addresses; see hone_addresses.
struct AddressRule {
  hone_address_rule rule;
  int64_t bound;
};

/// What the elements of plane `number` of `type` (getPlanes) have to be; nothing where they are numbers.
std::optional<AddressRule> getAddressRule(mlir::RankedTensorType type, size_t number);

} // namespace hone

#endif // HONE_DIALECT_HONE_PLANEADDRESSES_H
