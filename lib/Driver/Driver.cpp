// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of `hone`.

#include "hone/Driver/Driver.h"

#include "Calibrate.h"
#include "CompileReport.h"
#include "CompressFlags.h"
#include "Diagnostics.h"
#include "FlagChecks.h"
#include "Inspect.h"
#include "LimitFlags.h"
#include "Masks.h"
#include "Outputs.h"
#include "ProcessLimits.h"
#include "ProgressFlags.h"
#include "RewriteOnnx.h"
#include "cli/commands.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Export/Export.h"
#include "hone/InitAll.h"
#include "hone/io/manifest.h"
#include "hone/io/temporary.h"
#include "hone/runtime/cli.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

namespace {

cl::SubCommand importCommand("import", "read an ONNX model and write it as MLIR");
cl::SubCommand exportCommand("export", "write a model back as ONNX");
cl::SubCommand compileCommand("compile", "compile a model into an artefact (a folder, model.hone)");
cl::SubCommand calibrateCommand("calibrate",
                                "measure what the layers of a language model read, for passes that compress it");
cl::SubCommand reportCommand("report", "put reports of several compressions beside each other");
cl::SubCommand inspectCommand("inspect", "what is in a model, what was recognised of it and what was not");

constexpr llvm::StringLiteral kOverview = R"(usage: hone COMMAND [OPTIONS] FILE

commands
  import    read an ONNX model and write it as MLIR
  export    write a model back as ONNX
  compile   compile a model into an artefact, a folder that runs without LLVM
  calibrate measure what the layers of a language model read
  report    put reports of several compressions beside each other
  inspect   what is in a model or an artefact
  run       write text or tokens with an artefact, or call it with tensors
  eval      perplexity of an artefact on tokens
  bench     speed of an artefact

'hone COMMAND --help' lists a command's options, 'hone --version' says the version; hone-run has the last three where LLVM is absent.
)";

struct ImportFlags {
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.onnx"), cl::sub(importCommand)};
  cl::opt<std::string> output{"o", cl::desc("Write to FILE (.mlir or .mlirbc; default: standard output)"),
                              cl::value_desc("FILE"), cl::init("-"), cl::sub(importCommand)};
  LimitFlags limits{importCommand};
};

struct ExportFlags {
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.mlir|.mlirbc|.onnx"), cl::sub(exportCommand)};
  cl::opt<std::string> output{"o",
                              cl::desc("Write to FILE (default: the model's name with .onnx; of an ONNX file, with "
                                       ".rewritten.onnx)"),
                              cl::value_desc("FILE"), cl::sub(exportCommand)};
  CompressFlags compress{exportCommand};
  ReportFileFlags report{exportCommand};
  LimitFlags limits{exportCommand};
  ProgressFlags progress{exportCommand, "No progress and no table on standard error"};
};

struct InspectFlags {
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.onnx|.mlir|.mlirbc|.hone"), cl::sub(inspectCommand)};
  cl::opt<bool> json{"json", cl::desc("Print JSON"), cl::sub(inspectCommand)};
  MaskFlags masks{inspectCommand};
  LimitFlags limits{inspectCommand};
};

struct CalibrateFlags {
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.onnx|.mlir|.mlirbc"), cl::sub(calibrateCommand)};
  cl::opt<std::string> output{"o", cl::desc("Write the statistics to FILE"), cl::value_desc("FILE.safetensors"),
                              cl::sub(calibrateCommand)};
  cl::opt<std::string> tokens{"tokens", cl::desc("Token ids to run the model on: uint16, int32 or int64, of shape [n]"),
                              cl::value_desc("FILE.npy"), cl::sub(calibrateCommand)};
  cl::opt<int64_t> window{"window", cl::desc("Tokens a window; windows do not overlap (default: 512)"), cl::init(512),
                          cl::value_desc("N"), cl::sub(calibrateCommand)};
  cl::opt<int64_t> maxTokens{"max-tokens", cl::desc("Use the first N tokens alone (default: all)"),
                             cl::init(std::numeric_limits<int64_t>::max()), cl::value_desc("N"),
                             cl::sub(calibrateCommand)};
  cl::opt<int64_t> costTokens{"cost-tokens",
                              cl::desc("Also measure what errors of each weight cost, on the first N tokens"),
                              cl::value_desc("N"), cl::sub(calibrateCommand)};
  cl::opt<int64_t> threads{"threads", cl::desc("Threads (default: one for each processor)"), cl::value_desc("N"),
                           cl::sub(calibrateCommand)};
  CompressFlags compress{calibrateCommand};
  FormFlags forms{calibrateCommand};
  cl::opt<std::string> remarks{"remarks", cl::desc("Write every decision of the passes as YAML remarks"),
                               cl::value_desc("FILE"), cl::sub(calibrateCommand)};
  LimitFlags limits{calibrateCommand};
  ProgressFlags progress{calibrateCommand, "No progress on standard error"};
};

struct CompareFlags {
  cl::list<std::string> inputs{cl::Positional, cl::desc("REPORT.json..."), cl::sub(reportCommand)};
  cl::opt<std::string> output{"o", cl::desc("Write a page to FILE (default: a table to standard output)"),
                              cl::value_desc("FILE.html"), cl::sub(reportCommand)};
};

struct CompileFlags {
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.onnx|.mlir|.mlirbc"), cl::sub(compileCommand)};
  cl::opt<std::string> output{"o", cl::desc("Folder of the artefact (default: the model's name with .hone)"),
                              cl::value_desc("MODEL.hone"), cl::sub(compileCommand)};
  cl::opt<std::string> cpu{"mcpu", cl::desc("CPU to make code for: native (default) or LLVM's name of one"),
                           cl::value_desc("CPU"), cl::init("native"), cl::sub(compileCommand)};
  cl::opt<std::string> target{"target", cl::desc("Device to make code for: cpu (default) or cuda"),
                              cl::value_desc("DEVICE"), cl::init("cpu"), cl::sub(compileCommand)};
  cl::opt<std::string> chip{"chip", cl::desc("With --target=cuda, the chip: sm_80, sm_86, sm_89, sm_90 or sm_100"),
                            cl::value_desc("CHIP"), cl::sub(compileCommand)};
  cl::opt<std::string> ptxas{"ptxas", cl::desc("With --target=cuda, CUDA's assembler (default: that of the build)"),
                             cl::value_desc("FILE"), cl::sub(compileCommand)};
  cl::opt<std::string> sanitize{"sanitize", cl::desc("Check accesses to memory in generated code: address (slow)"),
                                cl::value_desc("KIND"), cl::sub(compileCommand)};
  cl::opt<std::string> tokenizer{"tokenizer", cl::desc("tokenizer.json to ship in the artefact"),
                                 cl::value_desc("FILE"), cl::sub(compileCommand)};
  cl::opt<std::string> saveIr{"save-ir", cl::desc("Write the IR after every phase into DIR"), cl::value_desc("DIR"),
                              cl::sub(compileCommand)};
  cl::opt<std::string> stopAfter{"stop-after", cl::desc("Write the IR after PHASE (to -o or standard output) and stop"),
                                 cl::value_desc("PHASE"), cl::sub(compileCommand)};
  cl::opt<std::string> startFrom{"start-from", cl::desc("Begin with PHASE: the input is IR from the phase before"),
                                 cl::value_desc("PHASE"), cl::sub(compileCommand)};
  cl::opt<std::string> weights{
      "weights",
      cl::desc("Type to store weight matrices in: f32 (default), f16 or bf16; f32 leaves a model "
               "of 16 bits as it is"),
      cl::value_desc("TYPE"), cl::sub(compileCommand)};
  cl::opt<std::string> cache{
      "kv-cache",
      cl::desc("Type to keep keys and values of sessions in: f32, f16, bf16, int8, int4, or model for the model's own "
               "(default: that of --weights; bf16 with --quantize; else the model's, which f32 leaves as it is too); "
               "bf16 is also what attention without a state may multiply in"),
      cl::value_desc("TYPE"), cl::sub(compileCommand)};
  CompressFlags compress{compileCommand};
  FormFlags forms{compileCommand};
  cl::opt<bool> pruneOutputs{"prune-outputs",
                             cl::desc("With --prune=N:M, prune the layers that make the model's results too"),
                             cl::sub(compileCommand)};
  cl::opt<std::string> tuneFor{"tune-for",
                               cl::desc("What 2:4 weights are to be faster for than with their zeros: decode, verify, "
                                        "prefill or numbers of tokens at "
                                        "once, with commas (default: decode, and prefill for models without state)"),
                               cl::value_desc("USES"), cl::sub(compileCommand)};
  cl::opt<bool> force{"force", cl::desc("Store 2:4 weights without their zeros also where that is slower"),
                      cl::sub(compileCommand)};
  cl::opt<std::string> passPipeline{"pass-pipeline", cl::desc("Passes of the rewrite phase"), cl::value_desc("PASSES"),
                                    cl::sub(compileCommand)};
  cl::opt<int64_t> ranks{
      "tensor-parallel",
      cl::desc("Split the model over N processes, which run the artefact together by MPI (default: 1)"), cl::init(1),
      cl::value_desc("N"), cl::sub(compileCommand)};
  cl::opt<std::string> remarks{"remarks", cl::desc("Write every decision of the passes as YAML remarks"),
                               cl::value_desc("FILE"), cl::sub(compileCommand)};
  ReportFlags report{compileCommand};
  LimitFlags limits{compileCommand};
  ProgressFlags progress{compileCommand, "No progress and no table on standard error"};
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

/// What was printed must have arrived; LLVM's own complaint about it would be a crash.
static int closeOutput(int status) {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error ? fail("cannot write standard output: " + error.message()) : status;
}

static int withContext(StringRef input, llvm::function_ref<LogicalResult(MLIRContext &)> action) {
  if (input.empty())
    return fail("expected a model, but got none");
  MLIRContext context;
  prepare(context);
  bool reported = false;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    printDiagnostic(diagnostic);
  });
  if (succeeded(action(context)))
    return closeOutput(0);
  if (!reported)
    llvm::errs() << "hone: internal error: a pass failed without saying why; please report it with the model\n";
  return reported ? 1 : 2;
}

static int runImport(const ImportFlags &flags) {
  FailureOr<ReadOptions> reading = flags.limits.apply();
  if (failed(reading))
    return 1;
  return withContext(flags.input, [&](MLIRContext &context) -> LogicalResult {
    CompileOptions options;
    options.input = flags.input;
    options.output = flags.output;
    OwningOpRef<ModuleOp> module = readModel(flags.input, &context, *reading);
    if (!module || failed(checkOutputs(options, listInputs(options, *module), module->getLoc())))
      return failure();
    return writeModule(*module, flags.output);
  });
}

/// The last part of the name of `path`, with another ending.
static std::string renamed(StringRef path, StringRef ending) {
  llvm::SmallString<128> name(llvm::sys::path::filename(path));
  llvm::sys::path::replace_extension(name, ending);
  return name.str().str();
}

/// The default output of `export`: an ONNX file is not written over.
static std::string nameExport(StringRef input) {
  return renamed(input, input.ends_with(".mlir") || input.ends_with(".mlirbc") ? "onnx" : "rewritten.onnx");
}

static int runExport(const ExportFlags &flags) {
  FailureOr<ReadOptions> reading = flags.limits.apply();
  if (failed(reading) || failed(flags.progress.apply()))
    return 1;
  return withContext(flags.input, [&](MLIRContext &context) -> LogicalResult {
    CompileOptions options;
    options.input = flags.input;
    // The second file lies beside the first one, and not beside a link to it.
    auto output = io::followLinks(flags.output.empty() ? nameExport(flags.input) : std::string(flags.output));
    if (failed(report(UnknownLoc::get(&context), output.status())))
      return failure();
    options.output = *output;
    OwningOpRef<ModuleOp> module = readModel(flags.input, &context, *reading);
    flags.compress.writeTo(options);
    ReportOptions reports;
    reports.files.assign(flags.report.files.begin(), flags.report.files.end());
    reports.summary = !flags.progress.quiet;
    options.otherOutputs = reports.files;
    options.otherOutputs.push_back(options.output + kDataEnding.str());
    if (!module || failed(checkOutputs(options, listInputs(options, *module), module->getLoc())) ||
        failed(rewriteWithReport(options, reports, *module)))
      return failure();
    std::optional<cli::Progress> progress;
    return exportOnnx(*module, options.output, [&](int64_t done, int64_t total, StringRef name) {
      if (!progress)
        progress.emplace("writing weights", total);
      progress->update(done, name);
    });
  });
}

static int printPipeline(const CompileOptions &options) {
  return withContext(options.input, [&](MLIRContext &context) {
    for (const Phase &phase : getPhases(options.target)) {
      PassManager pm(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
      if (failed(buildPhase(phase, options, pm, UnknownLoc::get(&context))))
        return failure();
      llvm::outs() << "// " << phase.name << ": " << phase.summary << '\n';
      if (pm.size())
        pm.printAsTextualPipeline(llvm::outs(), /*pretty=*/true);
      llvm::outs() << '\n';
    }
    return success();
  });
}

/// Why the flags of targets do not go together, or nothing.
static std::string checkTarget(const CompileFlags &flags) {
  bool isCuda = flags.target == "cuda";
  if (!isCuda && flags.target != "cpu")
    return "unsupported target '" + flags.target + "'; supported: cpu, cuda";
  for (const cl::opt<std::string> *option : {&flags.chip, &flags.ptxas})
    if (!isCuda && option->getNumOccurrences() > 0)
      return ("expected --target=cuda with --" + option->ArgStr).str();
  if (isCuda && flags.chip.empty())
    return "expected --chip with --target=cuda: sm_80, sm_86, sm_89, sm_90 or sm_100";
  if (isCuda && !flags.sanitize.empty())
    return "unsupported --sanitize=" + flags.sanitize + " with --target=cuda; supported: --target=cpu";
  if (!flags.sanitize.empty() && flags.sanitize != "address")
    return "unsupported --sanitize=" + flags.sanitize + "; supported: address";
  if (isCuda && (flags.cache == "int8" || flags.cache == "int4"))
    return "unsupported --kv-cache=" + flags.cache + " with --target=cuda; supported: f32, f16, bf16, model";
  return "";
}

static int runCompile(const CompileFlags &flags) {
  if (failed(checkRange(flags.ranks, io::kMostRanks)))
    return 1;
  if (std::string error = checkTarget(flags); !error.empty())
    return fail(error);
  CompileOptions options;
  options.input = flags.input;
  options.output = flags.output;
  if (options.output.empty() && flags.stopAfter.empty())
    options.output = renamed(options.input, "hone");
  options.cpu = flags.cpu;
  options.target = flags.target;
  options.sanitizer = flags.sanitize.empty() ? Sanitizer::None : Sanitizer::Address;
  options.chip = flags.chip;
  options.ptxas = flags.ptxas;
  options.tokenizer = flags.tokenizer;
  options.saveIr = flags.saveIr;
  options.stopAfter = flags.stopAfter;
  options.startFrom = flags.startFrom;
  options.weights = flags.weights;
  options.cache = flags.cache;
  flags.compress.writeTo(options);
  flags.forms.writeTo(options);
  options.pruneOutputs = flags.pruneOutputs;
  options.tuneFor = flags.tuneFor;
  options.force = flags.force;
  options.passPipeline = flags.passPipeline;
  options.ranks = flags.ranks;
  options.remarks = flags.remarks;
  FailureOr<ReadOptions> reading = flags.limits.apply();
  if (failed(reading) || failed(flags.progress.apply()))
    return 1;
  options.reading = *reading;
  if (flags.printPipeline)
    return printPipeline(options);
  return withContext(flags.input, [&](MLIRContext &context) {
    return compileWithReport(options, flags.report.get(flags.progress.quiet), &context);
  });
}

static int runCalibrate(const CalibrateFlags &flags) {
  if (flags.tokens.empty())
    return fail("expected --tokens FILE.npy");
  if (flags.output.empty())
    return fail("expected -o FILE.safetensors");
  constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();
  if (failed(checkRange(flags.window, unbounded)) || failed(checkRange(flags.maxTokens, unbounded)) ||
      failed(checkRange(flags.costTokens, unbounded)) || failed(checkRange(flags.threads, cli::kMostThreads)) ||
      failed(flags.progress.apply()))
    return 1;
  FailureOr<ReadOptions> reading = flags.limits.apply();
  if (failed(reading))
    return 1;
  CalibrateOptions options;
  options.rewrites.reading = *reading;
  flags.compress.writeTo(options.rewrites);
  flags.forms.writeTo(options.rewrites);
  options.input = flags.input;
  options.tokens = flags.tokens;
  options.output = flags.output;
  options.window = flags.window;
  options.maxTokens = flags.maxTokens;
  options.costTokens = flags.costTokens;
  options.threads = static_cast<int>(flags.threads);
  options.remarks = flags.remarks;
  return withContext(flags.input, [&](MLIRContext &context) { return calibrate(options, &context); });
}

static int runCompare(const CompareFlags &flags) {
  if (flags.inputs.empty())
    return fail("expected reports, but got none");
  return withContext(flags.inputs[0],
                     [&](MLIRContext &context) { return compareReports(flags.inputs, flags.output, &context); });
}

static int runInspect(const InspectFlags &flags) {
  FailureOr<ReadOptions> reading = flags.limits.apply();
  if (failed(reading))
    return 1;
  return withContext(flags.input, [&](MLIRContext &context) {
    return flags.masks.masks ? inspectMasks(flags.input, flags.masks, *reading, &context)
                             : inspectModel(flags.input, flags.json, *reading, &context);
  });
}

/// Commands on artefacts are the runtime's own; `inspect` of a folder is too, but for masks, which need its encodings.
static std::optional<int> runRuntimeCommand(ArrayRef<std::string> words) {
  if (words.empty() || !cli::isRunCommand(words[0]))
    return std::nullopt;
  ArrayRef<std::string> rest = words.drop_front();
  auto isArtefact = [](const std::string &word) {
    return llvm::sys::fs::is_directory(word) || StringRef(word).ends_with(".hone");
  };
  auto asksForMasks = [](StringRef word) { return word == "--masks" || word == "-masks"; };
  bool onModel = words[0] == "inspect" && (llvm::none_of(rest, isArtefact) || llvm::any_of(rest, asksForMasks));
  if (onModel)
    return std::nullopt;
  return cli::runMain("hone", words);
}

static cl::SubCommand &getCommand(StringRef name) {
  for (cl::SubCommand *command : {&importCommand, &exportCommand, &calibrateCommand, &reportCommand, &inspectCommand})
    if (command->getName() == name)
      return *command;
  return compileCommand;
}

/// The overview, for a word that is no command; nothing if it is one.
static std::optional<int> runOverview(ArrayRef<std::string> words) {
  static const StringRef known[] = {"import", "export", "compile", "calibrate", "report", "inspect", "--version"};
  if (!words.empty() && llvm::is_contained(known, words[0]))
    return std::nullopt;
  if (words.empty()) {
    llvm::errs() << kOverview;
    return 1;
  }
  static const StringRef help[] = {"--help", "-h", "help"};
  if (!llvm::is_contained(help, words[0]))
    return fail("unknown command '" + words[0] + "'; 'hone --help' lists the commands");
  llvm::outs() << kOverview;
  return closeOutput(0);
}

int runDriver(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  endWhereMemoryEnds();
  io::removeTemporariesOnInterrupt(llvm::sys::RunInterruptHandlers);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::optional<int> status = runRuntimeCommand(words))
    return *status;
  if (std::optional<int> status = runOverview(words))
    return *status;
  registerAllPasses();
  ImportFlags importFlags;
  ExportFlags exportFlags;
  CompileFlags compileFlags;
  CalibrateFlags calibrateFlags;
  CompareFlags compareFlags;
  InspectFlags inspectFlags;
  hideForeignOptions({&cl::SubCommand::getTopLevel(), &importCommand, &exportCommand, &compileCommand,
                      &calibrateCommand, &reportCommand, &inspectCommand});
  setVersionPrinter("hone");
  if (words[0] != "--version" && failed(checkOptions(words, getCommand(words[0]))))
    return 1;
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, "Hone: a compiler for transformer inference\n", &stream))
    return reportCommandLine(errors, words[0]);
  if (importCommand)
    return runImport(importFlags);
  if (exportCommand)
    return runExport(exportFlags);
  if (calibrateCommand)
    return runCalibrate(calibrateFlags);
  if (reportCommand)
    return runCompare(compareFlags);
  if (inspectCommand)
    return runInspect(inspectFlags);
  return runCompile(compileFlags);
}

} // namespace hone
