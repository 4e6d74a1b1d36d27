// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of all ISAs (isa.def), and the choice among them.

#include "cpu/kernel_table.h"

#include "cpu/kernels/kernel_row.h"
#include "hone/cpu/cpu_features.h"

#include <algorithm>
#include <sys/syscall.h>
#include <unistd.h>

#define HONE_ISA(isa, space, ...)                                                                                      \
  namespace hone::cpu::space {                                                                                         \
  extern const KernelRow kKernels[];                                                                                   \
  extern const int kKernelCount;                                                                                       \
  }
#include "hone/cpu/isa.def"
#undef HONE_ISA

// HONE_BUILDS_<namespace> is 1 or 0, as CMakeLists.txt says.
#define HONE_PASTE(left, right) left##right
#define HONE_WHERE(built, ...) HONE_PASTE(HONE_WHERE_, built)(__VA_ARGS__)
#define HONE_WHERE_0(...)
#define HONE_WHERE_1(...) __VA_ARGS__

namespace hone::cpu {
namespace {

struct IsaInfo {
  Isa isa;
  std::string_view name;
  std::vector<std::string_view> features;
  std::span<const KernelRow> kernels; // that use it; none where this build has none for the ISA
};

const std::vector<IsaInfo> &isas() {
  static const std::vector<IsaInfo> all = {
#define HONE_ISA(isa, space, ...)                                                                                      \
  {Isa::isa,                                                                                                           \
   #space,                                                                                                             \
   {__VA_ARGS__},                                                                                                      \
   {HONE_WHERE(HONE_BUILDS_##space, space::kKernels, static_cast<size_t>(space::kKernelCount))}},
#include "hone/cpu/isa.def"
#undef HONE_ISA
  };
  return all;
}

const IsaInfo &infoOf(Isa isa) { return isas()[static_cast<size_t>(isa)]; }

/// Linux gives a process the registers of AMX only when it asks (Documentation/arch/x86/xstate.rst); all its threads,
/// also later ones, have them then.
bool requestTiles() {
#ifdef SYS_arch_prctl
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

bool hasFeatures(const IsaInfo &info) {
  return std::ranges::all_of(info.features, [](std::string_view feature) { return *cpuHasFeature(feature); }) &&
         (info.isa != Isa::Amx || info.kernels.empty() || requestTiles());
}

} // namespace

std::string_view isaName(Isa isa) { return infoOf(isa).name; }

std::span<const Isa> supportedIsas() {
  static const std::vector<Isa> supported = [] {
    std::vector<Isa> list;
    for (const IsaInfo &info : isas()) {
      bool isSupported = hasFeatures(info);
      if (!isSupported && info.isa != Isa::AvxVnni) // a part of those after it
        break;
      if (isSupported && !info.kernels.empty())
        list.push_back(info.isa);
    }
    return list;
  }();
  return supported;
}

hone_kernel_fn findKernel(std::string_view name) {
  return supportedIsas().empty() ? nullptr : findKernel(name, supportedIsas().back());
}

hone_kernel_fn findKernel(std::string_view name, Isa isa) {
  if (infoOf(isa).kernels.empty())
    return nullptr;
  for (auto index = static_cast<size_t>(isa) + 1; index-- > 0;)
    for (const KernelRow &row : isas()[index].kernels)
      if (name == row.name)
        return row.function;
  return nullptr;
}

std::vector<std::string_view> kernelNames() {
  std::vector<std::string_view> names;
  auto built = std::ranges::find_if(isas(), [](const IsaInfo &info) { return !info.kernels.empty(); });
  for (const KernelRow &row : built->kernels) // the lowest has all
    names.emplace_back(row.name);
  std::ranges::sort(names);
  return names;
}

} // namespace hone::cpu
