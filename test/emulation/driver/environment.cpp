// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of HONE_EMULATED_*.

#include "driver/environment.h"

#include "driver/chip.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hone::emulation {
namespace {

[[noreturn]] void refuse(const char *name, std::string_view value, const char *expected) {
  std::fprintf(stderr, "emulated driver: expected %s to be %s, but got '%.*s'\n", name, expected,
               static_cast<int>(value.size()), value.data());
  std::exit(1);
}

template <class T> void readNumber(const char *name, T &value) {
  const char *text = std::getenv(name);
  if (text == nullptr)
    return;
  std::string_view view(text);
  auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0)
    refuse(name, view, "a number");
}

} // namespace

Environment Environment::read() {
  Environment environment;
  if (const char *chip = std::getenv("HONE_EMULATED_CHIP")) {
    environment.chip = chipNamed(chip);
    if (environment.chip == 0)
      refuse("HONE_EMULATED_CHIP", chip, "sm_80, sm_86, sm_89, sm_90 or sm_100");
  }
  readNumber("HONE_EMULATED_DRIVER_VERSION", environment.driverVersion);
  readNumber("HONE_EMULATED_MEMORY", environment.memoryBytes);
  readNumber("HONE_EMULATED_DEVICES", environment.devices);
  readNumber("HONE_EMULATED_FIRST_DEVICE", environment.firstDevice);
  readNumber("HONE_EMULATED_FAULT_AT", environment.faultAt);
  readNumber("HONE_EMULATED_INSTRUCTIONS", environment.instructions);
  if (const char *report = std::getenv("HONE_EMULATED_REPORT"))
    environment.report = report;
  return environment;
}

} // namespace hone::emulation
