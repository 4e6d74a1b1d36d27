// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// read_memory.cu as PTX, which ends with a zero.

extern const char kReadMemoryPtx[];
alignas(16) const char kReadMemoryPtx[] = {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
#embed HONE_READ_MEMORY_PTX
    , 0
#pragma clang diagnostic pop
};
