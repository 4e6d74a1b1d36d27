// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a module's calls spend their time on: a record of every call of an entry and of every kernel in it.
//
// A module that is loaded with a profile gives its program kernels that take the time; without one, the program calls the
// kernels themselves.

#ifndef HONE_RUNTIME_CORE_PROFILE_H
#define HONE_RUNTIME_CORE_PROFILE_H

#include "hone/io/manifest.h"
#include "hone/runtime/program.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace hone::rt {

/// An operand of a kernel, as it was in the call.
struct ProfiledOperand {
  hone_dtype dtype;
  std::vector<int64_t> shape;
  /// Where it begins in the tensor data of the weights file, if it lies there.
  std::optional<uint64_t> weightOffset;
};

/// Times are nanoseconds since the profile began.
struct ProfiledSpan {
  int64_t begin, end;
};

struct ProfiledKernel : ProfiledSpan {
  const char *name;
  int thread; // numbered in the order in which threads occur
  std::vector<ProfiledOperand> operands;
};

struct ProfiledCall : ProfiledSpan {
  std::string entry;
  std::vector<std::vector<int64_t>> inputShapes;
  int thread;
  std::vector<ProfiledKernel> kernels; // in the order in which they ended
};

/// Records the calls of modules that were loaded with it, and outlives them. One call at a time; its kernels may run in
/// several threads.
class Profile {
public:
  using Clock = std::chrono::steady_clock;

  /// Bytes of the tensor data that operands are looked for in.
  void setWeights(std::span<const uint8_t> bytes) { weights = bytes; }

  void beginCall(const io::EntryInfo &entry, std::span<const hone_tensor> inputs);
  void endCall();
  void addKernel(const char *name, std::span<const hone_tensor> operands, Clock::time_point begin,
                 Clock::time_point end);

  std::span<const ProfiledCall> calls() const { return recorded; }

private:
  int64_t sinceBeginning(Clock::time_point time) const;
  int numberOfThread();
  ProfiledOperand describe(const hone_tensor &operand) const;

  Clock::time_point beginning = Clock::now();
  std::span<const uint8_t> weights;
  std::vector<ProfiledCall> recorded;
  std::vector<std::thread::id> threads;
  std::set<std::string> names; // of kernels, which their modules may not outlive
  std::mutex mutex;
};

/// A function that calls the kernel of that name and records the call in the profile of the call it belongs to; null for a
/// name that is not in the kernel table.
hone_kernel_fn findProfiledKernel(std::string_view name);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_PROFILE_H
