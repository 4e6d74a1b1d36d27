// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone-run: runs artefacts, without LLVM.

#include "hone/cli/main.h"
#include "hone/io/descriptors.h"
#include "hone/io/mapped_faults.h"
#include "hone/io/temporary.h"

int main(int argc, char **argv) {
  hone::io::keepStandardStreams();
  hone::io::removeTemporariesOnInterrupt();
  hone::io::endOnMappedFault("hone-run");
  return hone::cli::runMain("hone-run", {argv + 1, argv + argc});
}
