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

#include <limits>
#include <string>

namespace hone {

/// Says why a command cannot run; the exit code of that.
inline int fail(const llvm::Twine &reason) {
  llvm::errs() << "hone: error: " << io::printable(reason.str()) << '\n';
  return 1;
}

/// Fails with a message where an option that was given is less than 1, or more than `most`.
inline llvm::LogicalResult checkRange(const llvm::cl::opt<int64_t> &option, int64_t most) {
  if (option.getNumOccurrences() == 0 || (option >= 1 && option <= most))
    return llvm::success();
  bool isBounded = most != std::numeric_limits<int64_t>::max();
  fail("expected --" + option.ArgStr + " to be a whole number " +
       (isBounded ? "from 1 to " + std::to_string(most) : std::string("of at least 1")) + ", but got " +
       std::to_string(option));
  return llvm::failure();
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
