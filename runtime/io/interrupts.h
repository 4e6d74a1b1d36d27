// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps that an interrupt does not come between.

#ifndef HONE_RUNTIME_IO_INTERRUPTS_H
#define HONE_RUNTIME_IO_INTERRUPTS_H

#include <functional>

namespace hone::io {

/// Calls `action`, which makes and removes no TemporaryPath; an interrupt that removes those comes before or after it.
void withoutInterrupt(const std::function<void()> &action);

} // namespace hone::io

#endif // HONE_RUNTIME_IO_INTERRUPTS_H
