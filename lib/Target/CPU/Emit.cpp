// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM dialect to a shared object: translation, optimisation for the CPU, object code in memory, linked by lld in process.

#include "EntryParts.h"

#include "hone/Import/Limits.h"
#include "hone/Target/CPU.h"
#include "hone/Target/Optimise.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "llvm/Transforms/IPO/MergeFunctions.h"

#include <fcntl.h>
#include <set>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";
/// Where a C library's mathematical functions are on any Linux: the soname that the program records as needed.
static constexpr llvm::StringLiteral kMathLibraries[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6",
                                                         "/usr/lib/libm.so.6"};

/// A program's headers, tables and page alignment take less than this beside what is in its object.
static constexpr uint64_t kProgramOverhead = 64 << 10;

/// What the runtime needs of a CPU in any case.
static constexpr llvm::StringLiteral kLeastCpu = "x86-64-v3";

static std::vector<std::string> getFeatures(StringRef name) {
  SmallVector<StringRef> enabled;
  llvm::X86::getFeaturesForCPU(kLeastCpu, enabled);
  if (name != "native")
    llvm::X86::getFeaturesForCPU(name, enabled);
  llvm::StringMap<bool> host = name == "native" ? llvm::sys::getHostCPUFeatures() : llvm::StringMap<bool>();
  std::set<std::string> features;
  for (StringRef feature : enabled)
    features.insert(feature.str());
  for (const auto &feature : host)
    if (feature.second)
      features.insert(feature.first().str());
  return {features.begin(), features.end()};
}

llvm::FailureOr<CpuTarget> CpuTarget::get(StringRef name, std::string &error) {
  std::vector<std::string> features = getFeatures(name);
  std::string resolved = name == "native" ? llvm::sys::getHostCPUName().str() : name.str();
  if (llvm::X86::parseArchX86(resolved, /*Only64Bit=*/true) != llvm::X86::CK_None)
    return CpuTarget{resolved, features};
  if (name == "native") // a CPU newer than LLVM: its features still say what it can do
    return CpuTarget{"x86-64", features};
  SmallVector<StringRef> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  error = "unsupported CPU '" + name.str() + "'; supported: native, " + llvm::join(known, ", ");
  return failure();
}

StringRef getKernelIsa(const CpuTarget &target) {
  StringRef highest;
  auto add = [&](StringRef isa, ArrayRef<StringRef> features) {
    if (llvm::all_of(features, [&](StringRef feature) { return llvm::is_contained(target.features, feature); }))
      highest = isa;
  };
#define HONE_ISA(isa, space, ...) add(#space, {__VA_ARGS__});
#include "hone/cpu/isa.def"
#undef HONE_ISA
  return highest;
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const CpuTarget &target, std::string &error) {
  static bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple(kTriple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  std::string features;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.name, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                   std::nullopt, llvm::CodeGenOptLevel::Default));
}

static void setFeatures(llvm::Module &module, const llvm::TargetMachine &machine) {
  bool wide = machine.getTargetFeatureString().contains("+avx512f");
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (wide)
      function.addFnAttr("prefer-vector-width", "512");
  }
}

/// The object code of a part of a program, or why there is none.
struct CompiledPart {
  llvm::SmallString<0> object;
  std::string error;
};

/// Layers have the same loops: equal functions become one before time is spent on each. Nothing compares their addresses; were it not said,
/// each would stay as a call of the one, and the inliner would copy that into all. Kernels of a GPU could not call each other.
static void mergeFunctions(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (function.hasLocalLinkage())
      function.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  llvm::MergeFunctionsPass::runOnModule(module);
}

/// In a context of its own, as one thread of several.
static CompiledPart compilePart(StringRef bitcode, const CpuTarget &target, Sanitizer sanitizer) {
  CompiledPart part;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target, part.error);
  if (!machine)
    return part;
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, "program"), context);
  if (!module) {
    part.error = llvm::toString(module.takeError());
    return part;
  }
  mergeFunctions(**module);
  optimise(**module, *machine, sanitizer);
  // In memory first: the object writer seeks, and does not report what a full disk refuses.
  llvm::raw_svector_ostream stream(part.object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    part.error = "cannot emit machine code for " + machine->getTargetCPU().str();
  else
    passes.run(**module);
  return part;
}

/// Merging the many stores of descriptors takes as long as all other selection of instructions, and gains nothing.
static void disableStoreMerging() {
  if (llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup("combiner-store-merging"))
    static_cast<llvm::cl::opt<bool> *>(option)->setValue(false);
}

/// Whether the disk has room for the program. The linker maps what it writes: without room, that ends in SIGBUS.
static std::error_code checkSpace(const std::string &path, uint64_t bytes) {
  int descriptor = -1;
  if (std::error_code error = llvm::sys::fs::openFileForWrite(path, descriptor))
    return error;
  int error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  ::close(descriptor);
  (void)llvm::sys::fs::remove(path);
  return std::error_code(error, std::generic_category());
}

static LogicalResult link(ArrayRef<std::string> objects, uint64_t objectBytes, StringRef path, Location loc) {
  std::string pathText = path.str(), output, errors;
  if (std::error_code error = checkSpace(pathText, objectBytes + kProgramOverhead))
    return emitError(loc) << "cannot write '" << path << "': " << error.message();
  SmallVector<const char *> arguments = {"ld.lld",      "-shared", "--gc-sections", "-z", "now", "--hash-style=gnu",
                                         "--strip-all", "-o",      pathText.c_str()};
  for (const std::string &object : objects)
    arguments.push_back(object.c_str());
  for (StringRef library : kMathLibraries)
    if (llvm::sys::fs::exists(library)) {
      arguments.push_back(library.data());
      break;
    }
  llvm::raw_string_ostream out(output), err(errors);
  bool linked = lld::elf::link(arguments, out, err, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!linked)
    return emitError(loc) << "cannot link '" << path << "': " << StringRef(errors).trim();
  return success();
}

/// Writes the objects beside `path`, and links them.
static LogicalResult writeProgram(ArrayRef<CompiledPart> parts, StringRef path, Location loc) {
  std::vector<std::string> objects;
  uint64_t bytes = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    objects.push_back((path + "." + Twine(number) + ".o").str());
    bytes += part.object.size();
  }
  std::vector<std::unique_ptr<llvm::FileRemover>> removers;
  for (auto [object, part] : llvm::zip_equal(objects, parts)) {
    removers.push_back(std::make_unique<llvm::FileRemover>(object));
    if (failed(writeFile(object, part.object, loc)))
      return failure();
  }
  return link(objects, bytes, path, loc);
}

/// The bytes of a constant of `type`, which are more than any memory where they do not fit 64 bits.
static uint64_t countBytes(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return llvm::SaturatingMultiply<uint64_t>(array.getNumElements(), countBytes(array.getElementType()));
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) : 0;
}

/// Fails, after an error, where the constants of the program are more than it can hold: LLVM writes out each element.
static LogicalResult checkConstants(ModuleOp module) {
  uint64_t sum = 0;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    sum = llvm::SaturatingAdd(sum, countBytes(global.getGlobalType()));
    if (sum > static_cast<uint64_t>(kMaxProgramConstants))
      return global.emitError() << "unsupported size of the constants of the program; supported: "
                                << kMaxProgramConstants << " bytes, but " << global.getGlobalType() << " makes it "
                                << sum;
  }
  return success();
}

void registerHostTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

LogicalResult emitProgram(ModuleOp module, const CpuTarget &target, Sanitizer sanitizer, StringRef path) {
  Location loc = module.getLoc();
  if (failed(checkConstants(module)))
    return failure();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target, error);
  if (!machine)
    return emitError(loc) << "cannot emit code for " << kTriple << ": " << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(module, context, "program");
  if (!translated)
    return failure();
  translated->setTargetTriple(llvm::Triple(kTriple));
  translated->setDataLayout(machine->createDataLayout());
  setFeatures(*translated, *machine);
  disableStoreMerging();
  std::vector<llvm::SmallString<0>> bitcode = splitByEntry(*translated, "hone_entries");
  translated.reset();
  std::vector<CompiledPart> parts(bitcode.size());
  llvm::parallelFor(0, parts.size(), [&](size_t i) { parts[i] = compilePart(bitcode[i], target, sanitizer); });
  for (const CompiledPart &part : parts)
    if (!part.error.empty())
      return emitError(loc) << part.error;
  return writeProgram(parts, path, loc);
}

} // namespace hone
