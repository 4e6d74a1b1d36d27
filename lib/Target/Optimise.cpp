// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analyses and passes of LLVM's new pass manager put together, and files.

#include "hone/Target/Optimise.h"

#include "hone/Dialect/Hone/Report.h"
#include "hone/io/file.h"

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

namespace hone {

/// Functions are marked before anything else runs, as LLVM then moves no load to where the program did not have it.
static void addAddressChecks(llvm::Module &module, llvm::PassBuilder &builder) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::SanitizeAddress);
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        llvm::AddressSanitizerOptions options;
        options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;
        passes.addPass(llvm::AddressSanitizerPass(options));
      });
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine, Sanitizer sanitizer) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  if (sanitizer == Sanitizer::Address)
    addAddressChecks(module, builder);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

llvm::LogicalResult writeFile(llvm::StringRef path, llvm::StringRef bytes, mlir::Location loc) {
  return report(loc, io::writeFile(path.str(), {bytes.data(), bytes.size()}));
}

} // namespace hone
