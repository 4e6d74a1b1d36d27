// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of include/hone/kernels: what the compiler reads of them is what kernels are compiled with, and
// docs/kernel-table.md is the table of them.

#include "cpu/kernel_table.h"

#include "hone/kernels/arguments.h"
#include "hone/kernels/descriptions.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace hone::test {
namespace {

using kernels::KernelInfo;
using testing::ElementsAre;

const KernelInfo &infoOf(std::string_view name) {
  const KernelInfo *info = kernels::findKernelInfo(name);
  EXPECT_NE(info, nullptr) << name;
  return info ? *info : kernels::kCpuKernels[0];
}

TEST(KernelTable, CountsWhatKernelsRead) {
#define HONE_KERNEL(name, function, Signature, Format, ...)                                                            \
  EXPECT_EQ(kernels::countTensors(infoOf(name)),                                                                       \
            (static_cast<int64_t>(kernels::kOperandCount<kernels::Signature, kernels::Format>)))                       \
      << name;
#include "hone/kernels/cpu.def"
#include "hone/kernels/cuda.def"
#undef HONE_KERNEL
}

TEST(KernelTable, EveryIsaHasEveryRow) {
  EXPECT_EQ(cpu::kernelNames().size(), std::size(kernels::kCpuKernels));
  int built = 0;
  for (cpu::Isa isa : {cpu::Isa::Avx2, cpu::Isa::AvxVnni, cpu::Isa::Avx512, cpu::Isa::Avx512Vnni, cpu::Isa::Avx512Bf16,
                       cpu::Isa::Amx}) {
    bool isBuilt = cpu::findKernel(kernels::kCpuKernels[0].name, isa) != nullptr;
    built += isBuilt;
    for (const KernelInfo &kernel : kernels::kCpuKernels)
      EXPECT_EQ(cpu::findKernel(kernel.name, isa) != nullptr, isBuilt) << kernel.name << " of " << cpu::isaName(isa);
  }
  EXPECT_GT(built, 0);
}

TEST(KernelTable, NumbersTensorsAsCallsDo) {
  const KernelInfo &mlp = infoOf("hone.packed_mlp.outliers.u4"); // six planes a weight
  EXPECT_EQ(kernels::indexOf(mlp, "gate"), 1);
  EXPECT_EQ(kernels::indexOf(mlp, "up"), 8);
  EXPECT_EQ(kernels::indexOf(mlp, "residual"), 22);
  EXPECT_EQ(kernels::indexOf(mlp, "y"), 23);
  EXPECT_EQ(kernels::indexOf(mlp, "factor"), -1);
  EXPECT_THAT(kernels::integersOf(mlp), ElementsAre("activation", "width", "group", "bits", "atLeast"));
  EXPECT_THAT(kernels::floatsOf(infoOf("hone.attention.f32")), ElementsAre("scale", "softcap", "skip"));
}

TEST(KernelTable, SaysWhatOperandsAre) {
  std::vector<kernels::Operand> operands = kernels::operandsOf(infoOf("hone.packed_mlp.f32"));
  ASSERT_EQ(operands.size(), 9u);
  EXPECT_TRUE(operands[1].name == "gate" && operands[1].isWeight && operands[1].isOptional);
  EXPECT_TRUE(operands[3].name == "up" && operands[3].isWeight && !operands[3].isOptional);
  EXPECT_TRUE(operands[7].name == "residual" && !operands[7].isWeight && operands[7].isOptional);
  EXPECT_TRUE(operands[8].name == "y" && operands[8].isOutput);
  EXPECT_TRUE(kernels::planesOf(infoOf("hone.packed_mlp.u4"))[2].isOptional);
}

TEST(KernelTable, KnowsWhatAddsAResidual) {
  for (const char *name :
       {"hone.packed_linear.f32", "hone.sparse_mlp.u8", "cuda.linear.bf16", "cuda.sparse_linear.f16"})
    EXPECT_TRUE(kernels::hasResidual(infoOf(name))) << name;
  for (const char *name : {"hone.linear.f32", "hone.expert_sum.f32", "cuda.rms_norm.f32"})
    EXPECT_FALSE(kernels::hasResidual(infoOf(name))) << name;
  EXPECT_EQ(kernels::findKernelInfo("hone.nothing.f32"), nullptr);
}

/// "x, weight {codes, scales, [zeros]}, [bias]" of the operands that are outputs, or that are not.
std::string textOf(const std::vector<kernels::Operand> &operands, const std::vector<kernels::Operand> &planes,
                   bool areOutputs) {
  std::string text;
  for (const kernels::Operand &operand : operands) {
    if (operand.isOutput != areOutputs)
      continue;
    std::string one = std::string(operand.name) + (operand.isWeight ? " {" + textOf(planes, {}, false) + "}" : "");
    text += (text.empty() ? "" : ", ") + (operand.isOptional ? "[" + one + "]" : one);
  }
  return text;
}

std::string join(const std::vector<std::string_view> &names) {
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// A line for the kernels that have operands and attributes in common.
void writeRows(std::ostream &to, std::span<const KernelInfo> all) {
  to << "| kernels | inputs | outputs | integers | floats | adds a residual |\n| --- | --- | --- | --- | --- | --- |\n";
  for (size_t i = 0; i < all.size();) {
    const KernelInfo &first = all[i];
    std::string names;
    for (; i < all.size() && &all[i].signature == &first.signature && &all[i].format == &first.format; ++i)
      names += (names.empty() ? "`" : ", `") + std::string(all[i].name) + "`";
    std::vector<kernels::Operand> operands = kernels::operandsOf(first), planes = kernels::planesOf(first);
    to << "| " << names << " | " << textOf(operands, planes, false) << " | " << textOf(operands, planes, true) << " | "
       << join(kernels::integersOf(first)) << " | " << join(kernels::floatsOf(first)) << " | "
       << (kernels::hasResidual(first) ? "yes" : "") << " |\n";
  }
}

TEST(KernelTable, DocumentIsTheTable) {
  std::ifstream file(HONE_KERNEL_DOCUMENT);
  std::stringstream document, table;
  document << file.rdbuf();
  table << "## CPU\n\n";
  writeRows(table, kernels::kCpuKernels);
  table << "\n## CUDA\n\n";
  writeRows(table, kernels::kCudaKernels);
  std::string text = document.str();
  size_t begin = text.find("## CPU\n");
  EXPECT_TRUE(begin != std::string::npos && text.substr(begin) == table.str())
      << "expected the end of docs/kernel-table.md to be\n"
      << table.str();
}

} // namespace
} // namespace hone::test
