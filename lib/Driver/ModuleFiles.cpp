// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and writing of modules as files: ONNX, MLIR text and bytecode.

#include "Compiler.h"
#include "ExternalFiles.h"

#include "FileStream.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Import/Import.h"
#include "hone/Import/ModuleText.h"
#include "hone/io/descriptors.h"
#include "hone/io/file.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <unistd.h>

using namespace mlir;

namespace hone {

//===----------------------------------------------------------------------===//
// Bytecode
//===----------------------------------------------------------------------===//

/// MLIR's reader believes what it reads: of damaged bytecode it may take any time and memory, or crash. What we write has the
/// CRC-32 of everything after the header in the header's name of the producer.
static constexpr llvm::StringLiteral kProducer = "hone " HONE_VERSION, kSumName = " crc32 ";
static constexpr size_t kSumDigits = 8, kMagicBytes = 4;

/// Where the producer of bytecode is; nothing for what is none, or has another header.
static std::optional<StringRef> findProducer(StringRef bytes) {
  constexpr size_t begin = kMagicBytes + 1; // after a version of one byte
  constexpr size_t most = 256;
  size_t end = bytes.take_front(most).find('\0', begin);
  return bytes.starts_with("ML\xEFR") && end != StringRef::npos ? std::optional(bytes.slice(begin, end)) : std::nullopt;
}

/// Whether the bytes are those that were written, as far as their producer says.
static bool isWhole(StringRef bytes) {
  std::optional<StringRef> producer = findProducer(bytes);
  if (!producer || !producer->starts_with("hone ") || !producer->contains(kSumName))
    return true;
  uint32_t sum = 0;
  StringRef digits = producer->rsplit(kSumName).second, rest = bytes.drop_front(producer->end() + 1 - bytes.begin());
  return digits.size() == kSumDigits && !digits.getAsInteger(16, sum) && io::crcOf({rest.data(), rest.size()}) == sum;
}

/// The module, or null after its first error, which `message` then has: others follow from it. The driver prints that of text.
static OwningOpRef<ModuleOp> parse(const std::shared_ptr<llvm::SourceMgr> &sources, bool isText, MLIRContext *context,
                                   std::string &message) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    bool isFirst = diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty();
    if (isFirst)
      message = diagnostic.str();
    return success(!isFirst || !isText);
  });
  return parseSourceFile<ModuleOp>(sources, ParserConfig(context));
}

static Location getLocation(StringRef path, MLIRContext *context) {
  return FileLineColLoc::get(context, llvm::sys::path::filename(path), 0, 0);
}

OwningOpRef<ModuleOp> readModuleText(std::unique_ptr<llvm::MemoryBuffer> text, StringRef path, MLIRContext *context) {
  Location loc = getLocation(path, context);
  if (std::string problem = checkModuleText(text->getBuffer()); !problem.empty()) {
    emitError(loc) << "cannot read '" << path << "': " << problem;
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  std::string message;
  OwningOpRef<ModuleOp> module = parse(sources, /*isText=*/true, context, message);
  if (!module && message.empty())
    emitError(loc) << "cannot read '" << path << "': it is not a module, or damaged";
  return module;
}

static OwningOpRef<ModuleOp> readBytecode(std::unique_ptr<llvm::MemoryBuffer> bytes, StringRef path,
                                          MLIRContext *context) {
  Location loc = getLocation(path, context);
  if (!isWhole(bytes->getBuffer())) {
    emitError(loc) << "cannot read '" << path
                   << "': it is damaged or cut short: its CRC-32 is not the one in its header";
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(bytes), llvm::SMLoc());
  std::string message;
  OwningOpRef<ModuleOp> module = parse(sources, /*isText=*/false, context, message);
  // Errors of bytecode have no place in the file.
  if (!module)
    emitError(loc) << "cannot read '" << path
                   << "': " << (message.empty() ? "it is not a module, or damaged" : message);
  return module;
}

/// Fails, after an error, where constants that are one number for all elements would be more than `limits` allow if written out.
static LogicalResult checkSplats(ModuleOp module, const Limits &limits) {
  int64_t left = limits.expandedBytes;
  auto isAllowed = [&](SplatElementsAttr splat) {
    auto type = dyn_cast<RankedTensorType>(splat.getType());
    std::optional<int64_t> bytes = type ? getDenseBytes(type) : 0;
    if (!bytes || *bytes > left)
      return WalkResult::interrupt();
    left -= *bytes;
    return WalkResult::advance();
  };
  WalkResult result = module.walk([&](Operation *op) {
    WalkResult all = op->getAttrDictionary().walk(isAllowed);
    if (all.wasInterrupted())
      op->emitError() << "unsupported size of a constant; supported: " << left
                      << " more bytes that are one number, which --max-expanded-bytes raises";
    return all;
  });
  return failure(result.wasInterrupted());
}

OwningOpRef<ModuleOp> readModel(StringRef path, MLIRContext *context, const ReadOptions &options) {
  bool isText = path.ends_with(".mlir");
  if (!isText && !path.ends_with(".mlirbc"))
    return importOnnx(path, context, options.limits, options.leastOpset);
  Location loc = getLocation(path, context);
  if (options.untrusted) {
    emitError(loc) << "unsupported input '" << path << "' with --untrusted; supported: ONNX, since IR may be code";
    return nullptr;
  }
  // Bytecode has sections at multiples of what its weights ask for, and is read where it lies.
  constexpr size_t alignment = 4096;
  uint64_t size = 0;
  absl::StatusOr<int> descriptor = io::openForReading(path.str(), size);
  if (failed(report(loc, descriptor.status())))
    return nullptr;
  auto file = llvm::MemoryBuffer::getOpenFile(*descriptor, path, size, /*RequiresNullTerminator=*/true,
                                              /*IsVolatile=*/false, llvm::Align(alignment));
  ::close(*descriptor);
  if (!file) {
    emitError(loc) << "cannot read '" << path << "': " << file.getError().message();
    return nullptr;
  }
  OwningOpRef<ModuleOp> module =
      isText ? readModuleText(std::move(*file), path, context) : readBytecode(std::move(*file), path, context);
  if (!module || failed(checkSplats(*module, options.limits)) ||
      failed(resolveExternalFiles(*module, path, options.allowExternalPaths)))
    return nullptr;
  return module;
}

namespace {

/// Of a module: knows the CRC-32 of everything after bytecode's header.
class ModuleStream : public FileStream {
public:
  using FileStream::FileStream;
  ~ModuleStream() override { flush(); }

  /// After bytecode whose producer has room for it: puts the sum of everything after the header there.
  void writeSum() {
    flush();
    if (status.ok())
      status = writer.overwrite(headerBytes - 1 - kSumDigits, llvm::utohexstr(sum, /*LowerCase=*/true, kSumDigits));
  }

private:
  void write_impl(const char *bytes, size_t size) override {
    StringRef rest(bytes, size);
    if (std::optional<StringRef> producer = written == 0 ? findProducer(rest) : std::nullopt)
      headerBytes = producer->end() + 1 - bytes;
    rest = rest.drop_front(written == 0 ? headerBytes : 0);
    sum = io::crcOf({rest.data(), rest.size()}, sum);
    FileStream::write_impl(bytes, size);
  }

  size_t headerBytes = 0; // of bytecode
  uint32_t sum = 0;
};

} // namespace

static LogicalResult print(ModuleOp module, StringRef path, StringRef producer, llvm::raw_ostream &os) {
  return withNamesFrom(module, path, [&] {
    if (path.ends_with(".mlirbc"))
      return writeBytecodeToFile(module, os, BytecodeWriterConfig(producer));
    OpPrintingFlags flags;
    flags.enableDebugInfo(true, /*prettyForm=*/false);
    module->print(os, flags);
    os << '\n';
    return success();
  });
}

LogicalResult writeModule(ModuleOp module, StringRef path) {
  bool asBytecode = path.ends_with(".mlirbc");
  if (path == "-") // the driver looks whether standard output took it
    return print(module, path, kProducer, llvm::outs());
  auto writer = io::FileWriter::create(path.str());
  absl::Status status = writer.status();
  if (status.ok()) {
    ModuleStream stream(*writer);
    bool hasSum = asBytecode && writer->canOverwrite();
    std::string producer = kProducer.str() + (hasSum ? kSumName.str() + std::string(kSumDigits, '0') : "");
    if (failed(print(module, path, producer, stream)))
      return module.emitError() << "cannot write '" << path << "' as bytecode";
    stream.flush();
    if (hasSum)
      stream.writeSum();
    status = stream.status.ok() ? writer->commit() : stream.status;
  }
  if (!status.ok())
    return module.emitError() << std::string(status.message());
  return success();
}

} // namespace hone
