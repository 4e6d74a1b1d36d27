// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests ask the emulated driver to be, by environment variables.

#pragma once

#include <cstdint>
#include <string>

namespace hone::emulation {

struct Environment {
  int chip = 90;                            // HONE_EMULATED_CHIP=sm_90
  int driverVersion = 13000;                // HONE_EMULATED_DRIVER_VERSION=12080
  uint64_t memoryBytes = uint64_t{8} << 30; // HONE_EMULATED_MEMORY=bytes, of each device
  int devices = 1;                          // HONE_EMULATED_DEVICES=0
  int firstDevice = 0;                      // HONE_EMULATED_FIRST_DEVICE=1, of those of the machine
  uint64_t faultAt = 0;      // HONE_EMULATED_FAULT_AT=n: the n-th launch of a kernel, from 1, faults; 0: none
  uint64_t instructions = 0; // HONE_EMULATED_INSTRUCTIONS=n: a launch after more of them than so many faults; 0: none
  std::string report;        // HONE_EMULATED_REPORT=file: where counters are written

  /// Reads the variables; ends the process with a sentence where one has no such value.
  static Environment read();
};

} // namespace hone::emulation
