//===- HoneDialect.cpp - registration of the hone dialect ---------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneDialect.h"

#include "hone/Dialect/Hone/HoneDialect.cpp.inc"

void hone::HoneDialect::initialize() {}
