// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and writing of modules as files: ONNX, MLIR text and bytecode.

#include "Compiler.h"

#include "hone/Import/Import.h"
#include "hone/io/file.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace hone {

/// Whether the text ends inside of a string: MLIR's lexer then reads on beyond the end.
static bool endsInString(StringRef text) {
  enum { Code, Comment, String } state = Code;
  for (size_t i = 0; i < text.size(); ++i) {
    if (state == String) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        state = Code;
    } else if (state == Comment) {
      state = text[i] == '\n' ? Code : Comment;
    } else if (text[i] == '"') {
      state = String;
    } else if (text[i] == '/' && text.substr(i + 1).starts_with("/")) {
      state = Comment;
    }
  }
  return state == String;
}

OwningOpRef<ModuleOp> readModel(StringRef path, MLIRContext *context) {
  if (!path.ends_with(".mlir") && !path.ends_with(".mlirbc"))
    return importOnnx(path, context);
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(path), 0, 0);
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    emitError(loc) << "cannot read '" << path << "': " << file.getError().message();
    return nullptr;
  }
  if (path.ends_with(".mlir") && endsInString((*file)->getBuffer())) {
    emitError(loc) << "cannot read '" << path << "': it ends inside of a string; it may be cut short";
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  bool reported = false;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // the driver prints it
  });
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(context));
  if (!module && !reported)
    emitError(loc) << "cannot read '" << path << "': it is not a module, or damaged";
  return module;
}

namespace {

/// Hands what is printed to a file that appears once it is whole; the first failure stays.
class FileStream : public llvm::raw_ostream {
public:
  explicit FileStream(io::FileWriter &writer) : writer(writer) { SetBufferSize(size_t(1) << 16); }
  ~FileStream() override { flush(); }
  absl::Status status;

private:
  void write_impl(const char *bytes, size_t size) override {
    if (status.ok())
      status = writer.write({bytes, size});
    written += size;
  }
  uint64_t current_pos() const override { return written; }

  io::FileWriter &writer;
  uint64_t written = 0;
};

} // namespace

static LogicalResult print(ModuleOp module, bool asBytecode, llvm::raw_ostream &os) {
  if (asBytecode)
    return writeBytecodeToFile(module, os);
  OpPrintingFlags flags;
  flags.enableDebugInfo(true, /*prettyForm=*/false);
  module->print(os, flags);
  os << '\n';
  return success();
}

LogicalResult writeModule(ModuleOp module, StringRef path) {
  bool asBytecode = path.ends_with(".mlirbc");
  if (path == "-") // the driver looks whether standard output took it
    return print(module, asBytecode, llvm::outs());
  auto writer = io::FileWriter::create(path.str());
  absl::Status status = writer.status();
  if (status.ok()) {
    FileStream stream(*writer);
    if (failed(print(module, asBytecode, stream)))
      return module.emitError() << "cannot write '" << path << "' as bytecode";
    stream.flush();
    status = stream.status.ok() ? writer->commit() : stream.status;
  }
  if (!status.ok())
    return module.emitError() << std::string(status.message());
  return success();
}

} // namespace hone
