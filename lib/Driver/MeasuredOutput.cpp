// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is opened for writing and closed again leaves nothing.

#include "MeasuredOutput.h"

#include "hone/Dialect/Hone/Report.h"
#include "hone/io/file.h"

using namespace mlir;

namespace hone {

FailureOr<io::TemporaryPath> makeFolderBeside(const std::string &output, Location loc) {
  if (auto writer = io::FileWriter::create(output); !writer.ok())
    return report(loc, writer.status());
  return makeTemporaryFolder(output, loc);
}

} // namespace hone
