// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images that programs load: PTX as text, and fatbins.

#pragma once

#include "driver/abi.h"

#include <string>

namespace hone::emulation {

/// Finds the PTX that a driver of the version would compile for the chip. Returns an error as the driver has it, and says on stderr what only
/// the emulation cannot do.
Result selectPtx(const void *image, int chip, int driverVersion, std::string &text);

} // namespace hone::emulation
