// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recording, and kernels that take their time.

#include "core/profile.h"

#include "core/call.h"
#include "cpu/kernel_table.h"

#include "hone/kernels/arguments.h"

#include <algorithm>

namespace hone::rt {
namespace {

/// One function for each kernel, so that it knows which one it is: program and kernel only pass operands.
enum KernelNumber {
#define HONE_KERNEL(name, function, ...) function,
#include "hone/kernels/cpu.def"
#undef HONE_KERNEL
};

template <KernelNumber number> struct TimedKernel {
  static inline const char *name;
  static inline size_t operandCount;
  static inline hone_kernel_fn kernel;

  static void call(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats) {
    Profile *profile = CallContext::of(call).profile();
    if (!profile) // the same program was loaded a second time, without a profile
      return kernel(call, operands, ints, floats);
    Profile::Clock::time_point begin = Profile::Clock::now();
    kernel(call, operands, ints, floats);
    runOrLeave(call, [=] {
      profile->addKernel(name, {operands, operandCount}, begin, Profile::Clock::now());
      return absl::OkStatus();
    });
  }

  static hone_kernel_fn of(const char *ownName, size_t operands) {
    name = ownName;
    operandCount = operands;
    kernel = cpu::findKernel(ownName);
    return &call;
  }
};

} // namespace

hone_kernel_fn findProfiledKernel(std::string_view wanted) {
#define HONE_KERNEL(name, function, Signature, Format, ...)                                                            \
  if (wanted == (name))                                                                                                \
    return TimedKernel<function>::of(name, kernels::kOperandCount<kernels::Signature, kernels::Format>);
#include "hone/kernels/cpu.def"
#undef HONE_KERNEL
  return nullptr;
}

int64_t Profile::sinceBeginning(Clock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - beginning).count();
}

int Profile::numberOfThread() {
  auto found = std::ranges::find(threads, std::this_thread::get_id());
  if (found == threads.end())
    found = threads.insert(found, std::this_thread::get_id());
  return static_cast<int>(found - threads.begin());
}

ProfiledOperand Profile::describe(const hone_tensor &operand) const {
  std::span<const int64_t> sizes(operand.sizes, static_cast<size_t>(operand.rank));
  ProfiledOperand described = {static_cast<hone_dtype>(operand.dtype), {sizes.begin(), sizes.end()}, {}};
  const auto *data = static_cast<const uint8_t *>(operand.data);
  if (!weights.empty() && data >= weights.data() && data < weights.data() + weights.size())
    described.weightOffset = data - weights.data();
  return described;
}

void Profile::beginCall(const io::EntryInfo &entry, std::span<const hone_tensor> inputs) {
  std::lock_guard lock(mutex);
  ProfiledCall call = {};
  call.entry = entry.name;
  call.thread = numberOfThread();
  for (const hone_tensor &input : inputs)
    call.inputShapes.emplace_back(input.sizes, input.sizes + input.rank);
  recorded.push_back(std::move(call));
  recorded.back().begin = sinceBeginning(Clock::now());
}

void Profile::endCall() { recorded.back().end = sinceBeginning(Clock::now()); }

void Profile::addKernel(const char *name, std::span<const hone_tensor> operands, Clock::time_point begin,
                        Clock::time_point end) {
  std::lock_guard lock(mutex);
  ProfiledKernel kernel = {
      {sinceBeginning(begin), sinceBeginning(end)}, names.emplace(name).first->c_str(), numberOfThread(), {}};
  for (const hone_tensor &operand : operands)
    kernel.operands.push_back(describe(operand));
  recorded.back().kernels.push_back(std::move(kernel));
}

} // namespace hone::rt
