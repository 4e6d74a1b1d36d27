// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What functions of the driver's interface share.

#pragma once

#include "driver/context.h"

#include <algorithm>

namespace hone::emulation {

struct LaunchRequest {
  void *function;
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  bool cooperative;
  void **arguments;
  void **extra;
};

/// Makes an operation of a launch, or says why a device would refuse it.
Result makeLaunch(Call &call, const LaunchRequest &request, Operation &operation);

/// Enqueues, unless the stream's recording was lost.
int submit(Call &call, Stream &stream, Operation operation);

/// Waits for a stream, which cannot be while it records.
int waitFor(Call &call, Stream &stream);

} // namespace hone::emulation
