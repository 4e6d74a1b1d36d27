// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `hone` command: models in, artefacts out.

#ifndef HONE_DRIVER_DRIVER_H
#define HONE_DRIVER_DRIVER_H

namespace hone {

/// Runs the command line; returns the exit status: 0, 1 for a fault of the user or of a file, 2 for one of ours.
int runDriver(int argc, char **argv);

} // namespace hone

#endif // HONE_DRIVER_DRIVER_H
