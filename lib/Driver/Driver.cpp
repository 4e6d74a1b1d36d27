// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of `hone`.

#include "hone/Driver/Driver.h"

#include "Compiler.h"
#include "hone/InitAll.h"
#include "hone/runtime/cli.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

#include <functional>

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

namespace {

cl::SubCommand importCommand("import", "read an ONNX model and write it as MLIR");
cl::SubCommand compileCommand("compile", "compile a model into an artefact (a folder, model.hone)");
// These are the runtime's, which parses their options; here they are listed.
cl::SubCommand runCommand("run", "write text with an artefact, or call it with tensors");
cl::SubCommand evalCommand("eval", "perplexity of an artefact on tokens");
cl::SubCommand benchCommand("bench", "speed of an artefact");

struct ImportFlags {
  cl::opt<std::string> input{cl::Positional, cl::Required, cl::desc("MODEL.onnx"), cl::sub(importCommand)};
  cl::opt<std::string> output{"o", cl::desc("Write to FILE (.mlir or .mlirbc; default: standard output)"),
                              cl::value_desc("FILE"), cl::init("-"), cl::sub(importCommand)};
};

struct CompileFlags {
  cl::opt<std::string> input{cl::Positional, cl::Required, cl::desc("MODEL.onnx|.mlir|.mlirbc"),
                             cl::sub(compileCommand)};
  cl::opt<std::string> output{"o", cl::desc("Folder of the artefact (default: the model's name with .hone)"),
                              cl::value_desc("MODEL.hone"), cl::sub(compileCommand)};
  cl::opt<std::string> cpu{"mcpu", cl::desc("CPU to make code for: native (default) or LLVM's name of one"),
                           cl::value_desc("CPU"), cl::init("native"), cl::sub(compileCommand)};
  cl::opt<std::string> target{"target", cl::desc("Device to make code for: cpu"), cl::value_desc("DEVICE"),
                              cl::init("cpu"), cl::sub(compileCommand)};
  cl::opt<std::string> tokenizer{"tokenizer", cl::desc("tokenizer.json to ship in the artefact"),
                                 cl::value_desc("FILE"), cl::sub(compileCommand)};
  cl::opt<std::string> saveIr{"save-ir", cl::desc("Write the IR after every phase into DIR"), cl::value_desc("DIR"),
                              cl::sub(compileCommand)};
  cl::opt<std::string> stopAfter{"stop-after", cl::desc("Write the IR after PHASE (to -o or standard output) and stop"),
                                 cl::value_desc("PHASE"), cl::sub(compileCommand)};
  cl::opt<std::string> startFrom{"start-from", cl::desc("Begin with PHASE: the input is IR from the phase before"),
                                 cl::value_desc("PHASE"), cl::sub(compileCommand)};
  cl::opt<std::string> passPipeline{"pass-pipeline", cl::desc("Passes of the rewrite phase"), cl::value_desc("PASSES"),
                                    cl::sub(compileCommand)};
  cl::opt<bool> printPipeline{"print-pipeline", cl::desc("Print the passes of every phase, and stop"),
                              cl::sub(compileCommand)};
};

} // namespace

static void prepare(MLIRContext &context) {
  DialectRegistry registry;
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  context.printOpOnDiagnostic(false);
}

/// One line a diagnostic, "error: file: node: message", and its notes below it.
static void printDiagnostic(Diagnostic &diagnostic) {
  static const char *const kinds[] = {"note", "warning", "error", "remark"};
  auto print = [](Diagnostic &one) {
    std::string where;
    Location loc = one.getLocation();
    if (auto name = dyn_cast<NameLoc>(loc)) {
      where = "'" + name.getName().str() + "': ";
      loc = name.getChildLoc();
    }
    if (auto file = dyn_cast<FileLineColLoc>(loc)) {
      std::string line =
          file.getLine() ? ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn()) : "";
      where = file.getFilename().str() + line + ": " + where;
    }
    llvm::errs() << "hone: " << kinds[static_cast<int>(one.getSeverity())] << ": " << where << one.str() << '\n';
  };
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
}

static int withContext(llvm::function_ref<LogicalResult(MLIRContext &)> action) {
  MLIRContext context;
  prepare(context);
  bool reported = false;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    printDiagnostic(diagnostic);
  });
  if (succeeded(action(context)))
    return 0;
  if (!reported)
    llvm::errs() << "hone: internal error: a pass failed without saying why; please report it with the model\n";
  return reported ? 1 : 2;
}

static int runImport(const ImportFlags &flags) {
  return withContext([&](MLIRContext &context) -> LogicalResult {
    OwningOpRef<ModuleOp> module = readModel(flags.input, &context);
    return success(module && succeeded(writeModule(*module, flags.output)));
  });
}

static int printPipeline() {
  MLIRContext context;
  prepare(context);
  for (const Phase &phase : getPhases()) {
    PassManager pm(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
    if (phase.build)
      phase.build(pm);
    llvm::outs() << "// " << phase.name << ": " << phase.summary << '\n';
    if (pm.size())
      pm.printAsTextualPipeline(llvm::outs(), /*pretty=*/true);
    llvm::outs() << '\n';
  }
  return 0;
}

static int runCompile(const CompileFlags &flags) {
  if (flags.printPipeline)
    return printPipeline();
  if (flags.target != "cpu") {
    llvm::errs() << "hone: error: unsupported target '" << flags.target << "'; supported: cpu\n";
    return 1;
  }
  CompileOptions options;
  options.input = flags.input;
  options.output = flags.output;
  if (options.output.empty() && flags.stopAfter.empty()) {
    llvm::SmallString<128> name(llvm::sys::path::filename(options.input));
    llvm::sys::path::replace_extension(name, "hone");
    options.output = name.str().str();
  }
  options.cpu = flags.cpu;
  options.tokenizer = flags.tokenizer;
  options.saveIr = flags.saveIr;
  options.stopAfter = flags.stopAfter;
  options.startFrom = flags.startFrom;
  options.passPipeline = flags.passPipeline;
  return withContext([&](MLIRContext &context) { return compile(options, &context); });
}

/// True where the runtime answers: its commands, and `inspect` of an artefact.
static bool isForRuntime(const std::vector<std::string> &arguments) {
  if (arguments.empty() || !cli::isRunCommand(arguments[0]))
    return false;
  return arguments[0] != "inspect" || llvm::any_of(arguments, [](const std::string &argument) {
           return StringRef(argument).rtrim('/').ends_with(".hone");
         });
}

int runDriver(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (isForRuntime(arguments))
    return cli::runMain("hone", arguments);
  registerAllPasses();
  ImportFlags importFlags;
  CompileFlags compileFlags;
  cl::HideUnrelatedOptions({&cl::getGeneralCategory()}, importCommand);
  cl::ParseCommandLineOptions(argc, argv, "Hone: a compiler for transformer inference\n");
  if (importCommand)
    return runImport(importFlags);
  if (compileCommand)
    return runCompile(compileFlags);
  cl::PrintHelpMessage();
  return 1;
}

} // namespace hone
