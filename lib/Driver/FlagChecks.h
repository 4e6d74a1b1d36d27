// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What commands say of options that cannot be.

#ifndef HONE_LIB_DRIVER_FLAGCHECKS_H
#define HONE_LIB_DRIVER_FLAGCHECKS_H

#include "hone/io/printable.h"

#include "mlir/Support/LLVM.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace hone {

/// Says why a command cannot run; the exit code of that.
inline int fail(const llvm::Twine &reason) {
  llvm::errs() << "hone: error: " << io::printable(reason.str()) << '\n';
  return 1;
}

/// LLVM's libraries register options of their own, which a user of this command does not want to read.
void hideForeignOptions(llvm::ArrayRef<llvm::cl::SubCommand *> commands);

/// Complaints about options that LLVM's parser makes in two lines, or with a guess: one it does not know, or one without
/// its value.
llvm::LogicalResult checkOptions(llvm::ArrayRef<std::string> words, const llvm::cl::SubCommand &command);

/// What LLVM's parser says of the words of `command`; of values it has complained itself.
int reportCommandLine(llvm::StringRef errors, llvm::StringRef command);

} // namespace hone

#endif // HONE_LIB_DRIVER_FLAGCHECKS_H
