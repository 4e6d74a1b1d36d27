// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CPUID by feature name (Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E).

#include "hone/cpu/cpu_features.h"

#include <algorithm>
#include <array>
#include <cpuid.h>
#include <cstdint>

namespace hone::cpu {
namespace {

enum class Register : uint8_t { Eax, Ebx, Ecx, Edx };
using enum Register;

/// Register state that the operating system must save for the feature to be usable: bits of XCR0.
enum class State : uint32_t { None = 0, Avx = 0x6, Avx512 = 0xe6, Amx = 0x60000 };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register place;
  uint8_t bit;
  State state = State::None;
};

constexpr uint32_t kExtended = 0x80000001, kExtended8 = 0x80000008;

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, Ecx, 0},
    {"pclmul", 1, 0, Ecx, 1},
    {"ssse3", 1, 0, Ecx, 9},
    {"fma", 1, 0, Ecx, 12, State::Avx},
    {"cx16", 1, 0, Ecx, 13},
    {"sse4.1", 1, 0, Ecx, 19},
    {"sse4.2", 1, 0, Ecx, 20},
    {"crc32", 1, 0, Ecx, 20},
    {"movbe", 1, 0, Ecx, 22},
    {"popcnt", 1, 0, Ecx, 23},
    {"aes", 1, 0, Ecx, 25},
    {"xsave", 1, 0, Ecx, 27},
    {"avx", 1, 0, Ecx, 28, State::Avx},
    {"f16c", 1, 0, Ecx, 29, State::Avx},
    {"rdrnd", 1, 0, Ecx, 30},
    {"cx8", 1, 0, Edx, 8},
    {"cmov", 1, 0, Edx, 15},
    {"mmx", 1, 0, Edx, 23},
    {"fxsr", 1, 0, Edx, 24},
    {"sse", 1, 0, Edx, 25},
    {"sse2", 1, 0, Edx, 26},
    {"fsgsbase", 7, 0, Ebx, 0},
    {"sgx", 7, 0, Ebx, 2},
    {"bmi", 7, 0, Ebx, 3},
    {"avx2", 7, 0, Ebx, 5, State::Avx},
    {"bmi2", 7, 0, Ebx, 8},
    {"invpcid", 7, 0, Ebx, 10},
    {"rtm", 7, 0, Ebx, 11},
    {"avx512f", 7, 0, Ebx, 16, State::Avx512},
    {"avx512dq", 7, 0, Ebx, 17, State::Avx512},
    {"rdseed", 7, 0, Ebx, 18},
    {"adx", 7, 0, Ebx, 19},
    {"avx512ifma", 7, 0, Ebx, 21, State::Avx512},
    {"clflushopt", 7, 0, Ebx, 23},
    {"clwb", 7, 0, Ebx, 24},
    {"avx512cd", 7, 0, Ebx, 28, State::Avx512},
    {"sha", 7, 0, Ebx, 29},
    {"avx512bw", 7, 0, Ebx, 30, State::Avx512},
    {"avx512vl", 7, 0, Ebx, 31, State::Avx512},
    {"avx512vbmi", 7, 0, Ecx, 1, State::Avx512},
    {"pku", 7, 0, Ecx, 4},
    {"waitpkg", 7, 0, Ecx, 5},
    {"avx512vbmi2", 7, 0, Ecx, 6, State::Avx512},
    {"shstk", 7, 0, Ecx, 7},
    {"gfni", 7, 0, Ecx, 8},
    {"vaes", 7, 0, Ecx, 9, State::Avx},
    {"vpclmulqdq", 7, 0, Ecx, 10, State::Avx},
    {"avx512vnni", 7, 0, Ecx, 11, State::Avx512},
    {"avx512bitalg", 7, 0, Ecx, 12, State::Avx512},
    {"avx512vpopcntdq", 7, 0, Ecx, 14, State::Avx512},
    {"rdpid", 7, 0, Ecx, 22},
    {"kl", 7, 0, Ecx, 23},
    {"cldemote", 7, 0, Ecx, 25},
    {"movdiri", 7, 0, Ecx, 27},
    {"movdir64b", 7, 0, Ecx, 28},
    {"enqcmd", 7, 0, Ecx, 29},
    {"uintr", 7, 0, Edx, 5},
    {"avx512vp2intersect", 7, 0, Edx, 8, State::Avx512},
    {"serialize", 7, 0, Edx, 14},
    {"tsxldtrk", 7, 0, Edx, 16},
    {"pconfig", 7, 0, Edx, 18},
    {"amx-bf16", 7, 0, Edx, 22, State::Amx},
    {"avx512fp16", 7, 0, Edx, 23, State::Avx512},
    {"amx-tile", 7, 0, Edx, 24, State::Amx},
    {"amx-int8", 7, 0, Edx, 25, State::Amx},
    {"sha512", 7, 1, Eax, 0},
    {"sm3", 7, 1, Eax, 1},
    {"sm4", 7, 1, Eax, 2},
    {"raoint", 7, 1, Eax, 3},
    {"avxvnni", 7, 1, Eax, 4, State::Avx},
    {"avx512bf16", 7, 1, Eax, 5, State::Avx512},
    {"cmpccxadd", 7, 1, Eax, 7},
    {"amx-fp16", 7, 1, Eax, 21, State::Amx},
    {"hreset", 7, 1, Eax, 22},
    {"avxifma", 7, 1, Eax, 23, State::Avx},
    {"movrs", 7, 1, Eax, 31},
    {"avxvnniint8", 7, 1, Edx, 4, State::Avx},
    {"avxneconvert", 7, 1, Edx, 5, State::Avx},
    {"amx-complex", 7, 1, Edx, 8, State::Amx},
    {"avxvnniint16", 7, 1, Edx, 10, State::Avx},
    {"prefetchi", 7, 1, Edx, 14},
    {"usermsr", 7, 1, Edx, 15},
    {"avx10.1", 7, 1, Edx, 19, State::Avx512},
    {"xsaveopt", 0xd, 1, Eax, 0},
    {"xsavec", 0xd, 1, Eax, 1},
    {"xsaves", 0xd, 1, Eax, 3},
    {"ptwrite", 0x14, 0, Ebx, 4},
    {"widekl", 0x19, 0, Ebx, 2},
    {"sahf", kExtended, 0, Ecx, 0},
    {"lzcnt", kExtended, 0, Ecx, 5},
    {"sse4a", kExtended, 0, Ecx, 6},
    {"prfchw", kExtended, 0, Ecx, 8},
    {"xop", kExtended, 0, Ecx, 11, State::Avx},
    {"lwp", kExtended, 0, Ecx, 15},
    {"fma4", kExtended, 0, Ecx, 16, State::Avx},
    {"tbm", kExtended, 0, Ecx, 21},
    {"mwaitx", kExtended, 0, Ecx, 29},
    {"64bit", kExtended, 0, Edx, 29},
    {"clzero", kExtended8, 0, Ebx, 0},
    {"rdpru", kExtended8, 0, Ebx, 4},
    {"wbnoinvd", kExtended8, 0, Ebx, 9},
};

/// XCR0, the register state the operating system saves; 0 where the CPU has no XGETBV.
uint32_t savedState() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
    return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Which of kFeatures the CPU has. In a virtual machine CPUID goes to the host, which takes as long as reading a small file: a leaf is
/// asked for once, and rows of one leaf follow each other.
std::array<bool, std::size(kFeatures)> findFeatures() {
  std::array<bool, std::size(kFeatures)> found = {};
  uint32_t saved = savedState(), values[4] = {};
  const Feature *last = nullptr;
  bool hasLeaf = false;
  for (size_t i = 0; i < found.size(); ++i) {
    const Feature &feature = kFeatures[i];
    if (!last || last->leaf != feature.leaf || last->subleaf != feature.subleaf)
      hasLeaf = __get_cpuid_count(feature.leaf, feature.subleaf, &values[0], &values[1], &values[2], &values[3]);
    last = &feature;
    auto state = static_cast<uint32_t>(feature.state);
    bool hasBit = values[static_cast<size_t>(feature.place)] >> feature.bit & 1;
    found[i] = hasLeaf && hasBit && (saved & state) == state;
  }
  return found;
}

} // namespace

std::optional<bool> cpuHasFeature(std::string_view name) {
  static const std::array<bool, std::size(kFeatures)> found = findFeatures();
  const auto *feature = std::ranges::find(kFeatures, name, &Feature::name);
  if (feature == std::end(kFeatures))
    return std::nullopt;
  return found[static_cast<size_t>(feature - kFeatures)];
}

} // namespace hone::cpu
