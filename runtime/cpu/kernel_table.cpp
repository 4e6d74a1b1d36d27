// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of all levels (levels.def), and the choice among them.

#include "cpu/kernel_table.h"

#include "cpu/cpu_features.h"
#include "cpu/kernels/kernel_row.h"

#include <algorithm>
#include <sys/syscall.h>
#include <unistd.h>

#define HONE_LEVEL(level, space, ...)                                                                                  \
  namespace hone::cpu::space {                                                                                         \
  extern const KernelRow kKernels[];                                                                                   \
  extern const int kKernelCount;                                                                                       \
  }
#include "cpu/levels.def"
#undef HONE_LEVEL

namespace hone::cpu {
namespace {

struct LevelInfo {
  Level level;
  std::string_view name;
  std::vector<std::string_view> features;
  std::span<const KernelRow> kernels;
};

const std::vector<LevelInfo> &levels() {
  static const std::vector<LevelInfo> all = {
#define HONE_LEVEL(level, space, ...)                                                                                  \
  {Level::level, #space, {__VA_ARGS__}, {space::kKernels, static_cast<size_t>(space::kKernelCount)}},
#include "cpu/levels.def"
#undef HONE_LEVEL
  };
  return all;
}

const LevelInfo &infoOf(Level level) { return levels()[static_cast<size_t>(level)]; }

/// Linux gives a process the registers of AMX only when it asks (Documentation/arch/x86/xstate.rst); all its threads, also
/// later ones, have them then.
bool requestTiles() {
#ifdef SYS_arch_prctl
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

bool isSupported(const LevelInfo &info) {
  return std::ranges::all_of(info.features, [](std::string_view feature) { return *cpuHasFeature(feature); }) &&
         (info.level != Level::Amx || requestTiles());
}

} // namespace

std::string_view levelName(Level level) { return infoOf(level).name; }

std::span<const Level> supportedLevels() {
  static const std::vector<Level> supported = [] {
    std::vector<Level> list;
    for (const LevelInfo &info : levels()) {
      if (!isSupported(info))
        break;
      list.push_back(info.level);
    }
    return list;
  }();
  return supported;
}

hone_kernel_fn findKernel(std::string_view name) {
  return supportedLevels().empty() ? nullptr : findKernel(name, supportedLevels().back());
}

hone_kernel_fn findKernel(std::string_view name, Level level) {
  for (const KernelRow &row : infoOf(level).kernels)
    if (name == row.name)
      return row.function;
  return nullptr;
}

std::vector<std::string_view> kernelNames() {
  std::vector<std::string_view> names;
  for (const KernelRow &row : infoOf(Level::Avx2).kernels)
    names.emplace_back(row.name);
  std::ranges::sort(names);
  return names;
}

} // namespace hone::cpu
