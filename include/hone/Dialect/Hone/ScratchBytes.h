// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the bytes lie that passes make of weights.

#ifndef HONE_DIALECT_HONE_SCRATCHBYTES_H
#define HONE_DIALECT_HONE_SCRATCHBYTES_H

#include "hone/io/file.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectInterface.h"

#include <mutex>
#include <vector>

namespace hone {

/// Bytes that are kept until the context ends, though only one weight of them is needed at a time. So they go to unlinked
/// spill files, and leave memory until somebody reads them. Safe for threads.
class ScratchBytes : public mlir::DialectInterface::Base<ScratchBytes> {
public:
  explicit ScratchBytes(mlir::Dialect *dialect) : Base(dialect) {}

  /// That of the context, which has to have loaded the dialect.
  static ScratchBytes &get(mlir::MLIRContext *context);

  /// From now on spill files are in the folder of `path`. Without, or where that folder takes no more, bytes stay in memory.
  void spillBeside(std::string path);
  /// A copy of `bytes`, at a multiple of 64.
  mlir::AsmResourceBlob copy(llvm::ArrayRef<char> bytes);
  /// Whether `bytes` are of such a file.
  bool holds(llvm::ArrayRef<char> bytes) const;

private:
  char *find(uint64_t size);

  mutable std::mutex mutex;
  std::string path;
  std::vector<io::ScratchFile> files;
  uint64_t used = 0; // of the last one
};

} // namespace hone

#endif // HONE_DIALECT_HONE_SCRATCHBYTES_H
