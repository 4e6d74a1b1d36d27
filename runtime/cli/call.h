// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run` with tensors: an entry is called with arrays of a .npz, and its outputs are written or compared.

#ifndef HONE_RUNTIME_CLI_CALL_H
#define HONE_RUNTIME_CLI_CALL_H

#include "cli/arrays.h"
#include "core/module.h"

namespace hone::cli {

struct CallOptions {
  std::optional<std::string> entry, inputs, outputs, expect, cases;
  Tolerance tolerance;
  int64_t threads = 0;
};

absl::Status callWithTensors(const rt::Module &module, const CallOptions &options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_CALL_H
