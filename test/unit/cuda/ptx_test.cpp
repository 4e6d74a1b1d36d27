// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The PTX of every kernel has the instructions that it is written for. What ptxas reports of registers is checked in
// table_test.cpp.

#include "cuda/kernels/kernel_device.h"

#include <gtest/gtest.h>
#include <map>
#include <regex>

namespace hone::test {
namespace {

/// Names of kernels, and instructions that each of them has; a star matches anything within a word. Every kernel has
/// one rule.
struct Rule {
  const char *functions;
  std::vector<const char *> instructions;
};

constexpr const char *kMma = "mma.sync.aligned.m16n8k16.row.col.f32";
constexpr const char *kMmaSparse = "mma.sp::ordered_metadata.sync.aligned.m16n8k32";
constexpr const char *kLdmatrix = "ldmatrix.sync.aligned";
constexpr const char *kCpAsync = "cp.async.cg.shared.global"; // 16 bytes each
constexpr const char *kTmaLoad = "cp.async.bulk.tensor.4d.shared::cluster";
constexpr const char *kWgmma = "wgmma.mma_async.sync.aligned.m64n";
constexpr const char *kWgmmaSparse = "wgmma.mma_async.sp.sync.aligned.m64n256k32";
constexpr const char *kLoad16 = "ld.global*.v4", *kLoad8 = "ld.global*.v2";
constexpr const char *kStore16 = "st.global*.v4", *kStore8 = "st.global*.v2";
constexpr const char *kShuffle = "shfl.sync";

const std::vector<Rule> kRules = {
    {"(sparse_)?gemv_(b?f16|affine|wide).*", {kMma, kLoad16}},
    {"grouped_gemv_b?f16_.*", {kMma, kLoad16}},
    {"grouped_gemv_affine.*", {kMma}}, // 4 or 8 bytes of quantized values a lane
    {"(sparse_|grouped_)?gemv_fma_f32_.*", {"ld.global*.v", "fma.rn.f32", kShuffle}},
    {"(grouped_)?gemv_fma_f16_.*", {kLoad8, "fma.rn.f32", kShuffle}},
    {"gemv_stream_.*", {kMma, kCpAsync, kLoad16}},
    {"sparse_gemv_fma_f16_.*", {"fma.rn.f32", kShuffle}},
    {"matmul", {"fma.rn.f32"}},
    {"(grouped_)?gemm_.*", {kMma, kLdmatrix, kCpAsync}},
    {"sparse_gemm_.*", {kMmaSparse, kLdmatrix, kCpAsync}},
    {"hopper_(gemm|flash)_.*", {kWgmma, kTmaLoad}},
    {"hopper_sparse_gemm_.*", {kWgmmaSparse, kTmaLoad}},
    {"hopper_decode_.*", {kMma, kLdmatrix, kCpAsync, kLoad16, kShuffle, "ld.shared::cluster"}},
    {"flash_(b?f16|split)_.*", {kMma, kLdmatrix, kCpAsync, kShuffle}},
    {"flash_double_.*", {kMma, kLdmatrix, kLoad16, kShuffle}},
    {"linear_attention_(delta_)?.*", {kLoad16, kLoad8, kStore16, kShuffle}},
    {"pool_keys", {"add.f32", "bar.sync"}},
    {"gather_pooled", {}},
    {"(score|select)_blocks", {"fma.rn.f32", kShuffle}},
    {"(embedding|rope)_4", {kLoad16, kLoad8, kStore16, kStore8}}, // of f32 and of 16 bits
    {"(rms|layer)_norm_4", {kLoad16, kLoad8, kStore16, kStore8, kShuffle}},
    {"strided_copy_16|move_positions", {kLoad16, kStore16}},
    {"strided_copy_8", {kLoad8, kStore8}},
    {"planes_of_.*", {kStore16}},
    {"rms_norm|layer_norm|attention_(fma|fma_masked|merge)|argmax_logits|sample_token", {kShuffle}},
    // Element by element, of any strides.
    {"store_bytes|embedding_(1|quantized)|rope_1|strided_copy_[124]|copy_(rows|columns)|add_outliers|reduce_epilogue|"
     "exp_logits|"
     "expert_("
     "groups|"
     "sum)",
     {}},
};

/// A function of a dependent fatbin, and its PTX for all chips.
struct Function {
  bool isDependent;
  std::string text;
};

std::map<std::string, Function> readFunctions() {
  std::map<std::string, Function> functions;
  constexpr std::string_view kEntry = ".visible .entry ";
  for (const cuda::Fatbin &fatbin : cuda::fatbins()) {
    std::string_view text(reinterpret_cast<const char *>(fatbin.bytes.data()), fatbin.bytes.size());
    for (size_t at = text.find(kEntry); at != std::string_view::npos;) {
      size_t name = at + kEntry.size(), end = text.find("\n}\n", name);
      Function &function = functions[std::string(text.substr(name, text.find('(', name) - name))];
      function.isDependent = fatbin.isDependent;
      function.text += text.substr(name, end - name);
      at = text.find(kEntry, name);
    }
  }
  return functions;
}

bool hasInstruction(std::string_view text, std::string_view instruction) {
  size_t star = instruction.find('*');
  std::string_view first = instruction.substr(0, star),
                   rest = star == instruction.npos ? "" : instruction.substr(star + 1);
  for (size_t at = text.find(first); at != text.npos; at = text.find(first, at + 1))
    if (text.substr(at, text.find_first_of(" \t", at) - at).find(rest) != text.npos)
      return true;
  return false;
}

TEST(PtxTest, FunctionsHaveTheirInstructions) {
  std::map<std::string, Function> functions = readFunctions();
  EXPECT_GT(functions.size(), 150u);
  std::map<const Rule *, int> used;
  for (const auto &[name, function] : functions) {
    const auto &[isDependent, text] = function;
    EXPECT_TRUE(!isDependent || hasInstruction(text, "griddepcontrol.wait")) << name << " does not wait";
    int rules = 0;
    for (const Rule &rule : kRules) {
      if (!std::regex_match(name, std::regex(rule.functions)))
        continue;
      ++rules, ++used[&rule];
      for (const char *instruction : rule.instructions)
        EXPECT_TRUE(hasInstruction(text, instruction)) << name << " has no " << instruction;
    }
    EXPECT_EQ(rules, 1) << name << " has not one rule";
    EXPECT_EQ(text.find("ld.local"), std::string::npos) << name;
    EXPECT_EQ(text.find("st.local"), std::string::npos) << name;
  }
  for (const Rule &rule : kRules)
    EXPECT_GT(used[&rule], 0) << rule.functions << ": no such function";
}

} // namespace
} // namespace hone::test
