// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU target: the phases of compilation below the hone dialect, and machine code.

#ifndef HONE_TARGET_CPU_H
#define HONE_TARGET_CPU_H

#include "hone/Target/Optimise.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hone {

/// A CPU that code is made for.
struct CpuTarget {
  /// LLVM's name of the CPU, resolved: never "native".
  std::string name;
  /// Features that code for it may use, by LLVM's names.
  std::vector<std::string> features;

  /// The CPU called `name` ("native" is the one of this machine); failure with the reason in `error`.
  static llvm::FailureOr<CpuTarget> get(llvm::StringRef name, std::string &error);
};

/// The name of the highest ISA of kernels (include/hone/cpu/isa.def) whose instructions `target` has.
llvm::StringRef getKernelIsa(const CpuTarget &target);

/// Where tensors are computed: on the CPU, or on a GPU beside it, whose program for the host is the CPU's.
enum class Target { Cpu, Cuda };

/// What sizes of inputs that are not known are likely to be, the first ones as batches are, and others. Memory is planned for these, and
/// any sizes are right.
struct LikelySizes {
  int64_t batch = 1, other = 128;
};

/// From tensors to entry points: decomposition, kernel selection, fusion, and what is the device's.
void buildTensorPipeline(mlir::OpPassManager &pm, Target target);
/// From tensors to memrefs and loops; on a device, to launches of kernels of the module @device. For AddressSanitizer every buffer is
/// an allocation of its own, as it sees no border between parts of one.
void buildBufferPipeline(mlir::OpPassManager &pm, Target target, Sanitizer sanitizer = Sanitizer::None,
                         const LikelySizes &sizes = {});
/// From loops to the LLVM dialect; the module @device to that of NVVM.
void buildLLVMPipeline(mlir::OpPassManager &pm, Target target);

/// What emitProgram needs of the dialects that it translates.
void registerHostTranslations(mlir::DialectRegistry &registry);

/// Translates a module of the LLVM dialect, optimises it for `target`, and links it into the shared object `path`. What checks of
/// `sanitizer` call is left to the process that loads it.
llvm::LogicalResult emitProgram(mlir::ModuleOp module, const CpuTarget &target, Sanitizer sanitizer,
                                llvm::StringRef path);

} // namespace hone

#endif // HONE_TARGET_CPU_H
