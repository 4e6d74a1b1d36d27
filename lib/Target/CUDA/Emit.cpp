// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The module of the device to PTX: translation, functions of libdevice for what has no instruction, LLVM's optimisation and
// backend in process.

#include "Assemble.h"

#include "hone/Target/CUDA.h"
#include "hone/Target/Optimise.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// What names of libdevice's functions begin with.
static constexpr llvm::StringLiteral kLibdevicePrefix = "__nv_";

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const CudaChip &chip, std::string &error) {
  static bool initialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple(kTriple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, chip.name, ("+" + chip.ptx).str(), llvm::TargetOptions(), std::nullopt,
                                   std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// Takes in the functions of libdevice that `module` calls, for itself alone.
static LogicalResult linkLibdevice(llvm::Module &module, StringRef path, Location loc) {
  bool needed = llvm::any_of(module, [](const llvm::Function &function) {
    return function.isDeclaration() && function.getName().starts_with(kLibdevicePrefix);
  });
  if (!needed)
    return success();
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> library = llvm::parseIRFile(path, error, module.getContext());
  if (!library)
    return emitError(loc) << "cannot read '" << path << "': " << error.getMessage();
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  auto internalize = [](llvm::Module &linked, const llvm::StringSet<> &taken) {
    llvm::internalizeModule(
        linked, [&](const llvm::GlobalValue &value) { return !value.hasName() || !taken.contains(value.getName()); });
  };
  if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded, internalize))
    return emitError(loc) << "cannot link '" << path << "' to the device's code";
  return success();
}

static FailureOr<std::string> emitPtx(llvm::Module &module, llvm::TargetMachine &machine, Location loc) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return emitError(loc) << "cannot emit PTX for " << machine.getTargetCPU();
  passes.run(module);
  return text.str().str();
}

static void report(ArrayRef<KernelUsage> usage, Location loc) {
  for (const KernelUsage &kernel : usage) {
    std::string name = "kernel '" + kernel.name + "'";
    if (kernel.spilledBytes > 0)
      remark::missed(loc, remark::RemarkOpts::name("Spilled").category("hone-cuda"))
          << name + " stores and loads " + std::to_string(kernel.spilledBytes) + " bytes of registers in memory";
    remark::passed(loc, remark::RemarkOpts::name("Assembled").category("hone-cuda"))
        << name + " takes " + std::to_string(kernel.registers) + " registers and " +
               std::to_string(kernel.sharedBytes) + " bytes of shared memory";
  }
}

void registerDeviceTranslations(DialectRegistry &registry) {
  registerNVVMDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
}

LogicalResult emitDevice(ModuleOp module, const CudaOptions &options, StringRef path) {
  Location loc = module.getLoc();
  FailureOr<CudaTools> tools = CudaTools::find(options, loc);
  if (failed(tools))
    return failure();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto devices = module.getOps<gpu::GPUModuleOp>();
  auto device = devices.empty() ? gpu::GPUModuleOp::create(b, loc, "device") : *devices.begin();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(options.chip, error);
  if (!machine)
    return emitError(loc) << "cannot emit code for " << kTriple << ": " << error;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(device, llvmContext, "device");
  if (!translated)
    return failure();
  device.erase();
  translated->setTargetTriple(llvm::Triple(kTriple));
  translated->setDataLayout(machine->createDataLayout());
  if (failed(linkLibdevice(*translated, tools->libdevice, loc)))
    return failure();
  optimise(*translated, *machine);
  FailureOr<std::string> ptx = emitPtx(*translated, *machine, loc);
  if (failed(ptx) || (!options.savePtx.empty() && failed(writeFile(options.savePtx, *ptx, loc))))
    return failure();
  FailureOr<std::vector<KernelUsage>> usage = assemble(*tools, *ptx, options.chip, path, loc);
  if (failed(usage))
    return failure();
  report(*usage, loc);
  return success();
}

} // namespace hone
