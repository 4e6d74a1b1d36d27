// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program does where a mapped file is truncated while it is read.

#ifndef HONE_IO_MAPPED_FAULTS_H
#define HONE_IO_MAPPED_FAULTS_H

namespace hone::io {

/// From here on a page of a mapped file that cannot be read (SIGBUS: the file was truncated, its disk failed) is an error of `program` that
/// names the file: temporary paths are removed, and the process ends with status 1. SIGBUS of other causes ends it as before. To be called by
/// a program's `main`, never by a library, whose host decides about signals; `alsoRemove` may remove what others made.
void endOnMappedFault(const char *program, void (*alsoRemove)() = nullptr);

} // namespace hone::io

#endif // HONE_IO_MAPPED_FAULTS_H
