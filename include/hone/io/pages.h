// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that files are mapped to.

#ifndef HONE_IO_PAGES_H
#define HONE_IO_PAGES_H

#include <cstdint>
#include <memory>

namespace hone::io {

/// Leaves mapped bytes to their file until somebody reads or writes them again: until then no memory of the process holds them, nor
/// what shares a page with them. Does nothing to what they are.
void releasePages(const void *begin, uint64_t bytes);

/// Turns readahead off for mapped pages of a file (MADV_RANDOM): a page fault reads its own page. `begin` is that of a page.
void adviseRandom(const void *begin, uint64_t bytes);

/// Whether a page is in memory: one of a file, in the system's page cache. True where the system does not say.
bool isResident(const void *address);

/// Has the system read the pages of the range from their file, if they are not in memory, and does not wait for them (MADV_WILLNEED).
void prefetchPages(const void *begin, uint64_t bytes);

/// Memory of zeros in huge pages (MADV_HUGEPAGE) where the system grants them. Null for less than one of them, and where there is not so
/// much memory.
std::shared_ptr<char> mapHugePages(uint64_t bytes);

/// Returns what the allocator keeps of freed memory to the system.
void trimHeap();

} // namespace hone::io

#endif // HONE_IO_PAGES_H
