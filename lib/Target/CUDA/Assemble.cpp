// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs ptxas and fatbinary on files beside the result, and reads what ptxas says of registers.

#include "Assemble.h"

#include "hone/Target/Optimise.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

/// The mathematical functions of devices, from where ptxas is: as in a toolkit.
static constexpr llvm::StringLiteral kLibdevice = "nvvm/libdevice/libdevice.10.bc";

FailureOr<CudaTools> CudaTools::find(const CudaOptions &options, Location loc) {
  CudaTools tools;
  tools.ptxas = options.ptxas.empty() ? HONE_PTXAS : options.ptxas;
  StringRef folder = llvm::sys::path::parent_path(tools.ptxas);
  llvm::SmallString<128> fatbinary(folder), libdevice(llvm::sys::path::parent_path(folder));
  llvm::sys::path::append(fatbinary, "fatbinary");
  llvm::sys::path::append(libdevice, kLibdevice);
  tools.fatbinary = fatbinary.str();
  tools.libdevice = libdevice.str();
  for (const std::string &file : {tools.ptxas, tools.fatbinary, tools.libdevice}) {
    if (llvm::sys::fs::exists(file))
      continue;
    InFlightDiagnostic error = emitError(loc)
                               << "cannot make code for CUDA: "
                               << (file.empty() ? std::string("ptxas is not known") : "there is no '" + file + "'");
    error.attachNote() << "CUDA's toolkit has ptxas, and so have the packages nvidia-cuda-nvcc and nvidia-nvvm of "
                          "PyPI; --ptxas=FILE says where it is";
    return failure();
  }
  return tools;
}

/// Runs a tool; what it writes to both streams, or failure after an error with that.
static FailureOr<std::string> run(ArrayRef<std::string> words, StringRef log, Location loc) {
  SmallVector<StringRef> arguments(words.begin(), words.end());
  std::string reason;
  std::optional<StringRef> redirects[] = {std::nullopt, log, log};
  int status = llvm::sys::ExecuteAndWait(words.front(), arguments, /*Env=*/std::nullopt, redirects, /*SecondsToWait=*/0,
                                         /*MemoryLimit=*/0, &reason);
  auto output = llvm::MemoryBuffer::getFile(log);
  std::string text = output ? (*output)->getBuffer().str() : std::string();
  if (status == 0)
    return text;
  StringRef said = reason.empty() ? StringRef(text).trim() : StringRef(reason);
  return emitError(loc) << "cannot make code for CUDA: '" << words.front() << "' failed: " << said;
}

/// Of "ptxas info    : Compiling entry function 'a' for 'sm_90'", of the line of its stack frame, and of "Used 20 registers".
static std::vector<KernelUsage> parseUsage(StringRef text) {
  llvm::Regex name("entry function '([^']+)'"), spills("([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads"),
      registers("Used ([0-9]+) registers"), shared("([0-9]+) bytes smem");
  std::vector<KernelUsage> usage;
  SmallVector<StringRef> lines, match;
  text.split(lines, '\n');
  auto number = [&](unsigned group) {
    int64_t value = 0;
    (void)match[group].getAsInteger(10, value);
    return value;
  };
  for (StringRef line : lines) {
    if (name.match(line, &match))
      usage.push_back({match[1].str()});
    if (usage.empty())
      continue;
    if (spills.match(line, &match))
      usage.back().spilledBytes += number(1) + number(2);
    if (registers.match(line, &match))
      usage.back().registers = number(1);
    if (shared.match(line, &match))
      usage.back().sharedBytes = number(1);
  }
  return usage;
}

FailureOr<std::vector<KernelUsage>> assemble(const CudaTools &tools, StringRef ptx, const CudaChip &chip,
                                             StringRef path, Location loc) {
  std::string source = (path + ".ptx").str(), cubin = (path + ".cubin").str(), log = (path + ".log").str();
  llvm::FileRemover removers[] = {llvm::FileRemover(source), llvm::FileRemover(cubin), llvm::FileRemover(log)};
  if (failed(writeFile(source, ptx, loc)))
    return failure();
  FailureOr<std::string> said = run({tools.ptxas, "-v", "-arch=" + chip.name.str(), "-o", cubin, source}, log, loc);
  if (failed(said))
    return failure();
  std::string number = chip.name.drop_front(3).str();
  // Uncompressed, so that anything that reads the container can read the text.
  if (failed(run({tools.fatbinary, "-64", "--compress=false", "--create=" + path.str(),
                  "--image3=kind=elf,sm=" + number + ",file=" + cubin,
                  "--image3=kind=ptx,sm=" + number + ",file=" + source},
                 log, loc)))
    return failure();
  return parseUsage(*said);
}

} // namespace hone
