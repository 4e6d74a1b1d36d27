// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `hone` command.

#include "hone/Driver/Driver.h"

int main(int argc, char **argv) { return hone::runDriver(argc, argv); }
