// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The report of counters.

#include "driver/counters.h"

#include <cstdio>
#include <fstream>

namespace hone::emulation {

uint64_t Counters::instructions() const {
  uint64_t sum = 0;
  for (const auto &[name, kernel] : kernels)
    sum += kernel.instructions;
  return sum;
}

void Counters::write(const std::string &file) const {
  // Readers see the old report or the new one.
  std::string next = file + ".next";
  std::ofstream out(next);
  auto copies = [&](const char *name, const Copies &counted) {
    out << "    \"" << name << "\": {\"count\": " << counted.count << ", \"bytes\": " << counted.bytes << "}";
  };
  out << "{\n  \"launches\": " << launches << ",\n  \"graph_launches\": " << graphLaunches
      << ",\n  \"graph_instantiations\": " << graphInstantiations << ",\n  \"graph_updates\": " << graphUpdates
      << ",\n  \"synchronisations\": " << synchronisations << ",\n  \"memsets\": " << memsets
      << ",\n  \"allocations\": " << allocations << ",\n  \"pool_allocations\": " << poolAllocations
      << ",\n  \"pages\": {\"reservations\": " << pages.reservations << ", \"created\": " << pages.created
      << ", \"released\": " << pages.released << ", \"mapped\": " << pages.mapped
      << ", \"unmapped\": " << pages.unmapped << "},\n  \"copies\": {\n";
  copies("to_device", toDevice);
  out << ",\n";
  copies("to_host", toHost);
  out << ",\n";
  copies("on_device", onDevice);
  out << "\n  },\n  \"kernels\": {";
  const char *separator = "\n";
  for (const auto &[name, kernel] : kernels) {
    out << separator << "    \"" << name << "\": {\"launches\": " << kernel.launches
        << ", \"instructions\": " << kernel.instructions << "}";
    separator = ",\n";
  }
  out << "\n  }\n}\n";
  out.close();
  if (!out || std::rename(next.c_str(), file.c_str()) != 0)
    std::fprintf(stderr, "emulated driver: cannot write '%s'\n", file.c_str());
}

} // namespace hone::emulation
