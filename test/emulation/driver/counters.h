// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a process asked of the emulated driver, for tests that count.

#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hone::emulation {

struct Counters {
  struct Kernel {
    uint64_t launches = 0;
    uint64_t instructions = 0; // of its warps
  };
  struct Copies {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  /// Of virtual memory management.
  struct Pages {
    uint64_t reservations = 0; // of addresses
    uint64_t created = 0;
    uint64_t released = 0;
    uint64_t mapped = 0;
    uint64_t unmapped = 0;
  };
  uint64_t launches = 0; // calls that launch a kernel; not those in graphs
  uint64_t graphLaunches = 0;
  uint64_t graphInstantiations = 0;
  uint64_t graphUpdates = 0;
  uint64_t synchronisations = 0; // calls that wait
  uint64_t memsets = 0;
  uint64_t allocations = 0;     // that wait for the device
  uint64_t poolAllocations = 0; // in the order of a stream
  Copies toDevice;              // calls; what graphs copy is counted each time
  Copies toHost;
  Copies onDevice;
  Pages pages;
  std::map<std::string, Kernel> kernels;

  /// Of all kernels.
  uint64_t instructions() const;

  /// Writes all of it as JSON, in place of what the file holds. A file that cannot be written is said on stderr.
  void write(const std::string &file) const;
};

} // namespace hone::emulation
