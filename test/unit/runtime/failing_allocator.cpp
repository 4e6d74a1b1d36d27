// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of the C library, defined in the program. Beneath them lies glibc's allocator, or AddressSanitizer's, which then sees what
// becomes of memory after a failure.

#include "failing_allocator.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <link.h>
#include <new>
#include <span>

#if __has_feature(address_sanitizer)
#define HONE_BENEATH(name) ___interceptor_##name
#else
#define HONE_BENEATH(name) __libc_##name
#endif

extern "C" {
void *HONE_BENEATH(malloc)(size_t bytes);
void *HONE_BENEATH(calloc)(size_t count, size_t bytes);
void *HONE_BENEATH(realloc)(void *memory, size_t bytes);
void *HONE_BENEATH(memalign)(size_t alignment, size_t bytes);
void HONE_BENEATH(free)(void *memory);
}

namespace hone::test {

Injection injection;

namespace {

/// The code of OpenMP.
uintptr_t openMpBegin = 0, openMpEnd = 0;

bool failsFor(void *caller) {
  auto address = reinterpret_cast<uintptr_t>(caller);
  if (!injection.isArmed || (address >= openMpBegin && address < openMpEnd))
    return false;
  int64_t number = injection.allocations++;
  return number == injection.fails || (injection.persists && injection.fails >= 0 && number > injection.fails);
}

template <typename Allocate> void *allocate(void *caller, Allocate allocate) {
  void *memory = failsFor(caller) ? nullptr : allocate();
  if (!memory)
    errno = ENOMEM;
  injection.live += memory != nullptr;
  return memory;
}

int findOpenMp(dl_phdr_info *library, size_t, void *) {
  if (!std::strstr(library->dlpi_name, "libomp"))
    return 0;
  for (const ElfW(Phdr) &part : std::span(library->dlpi_phdr, library->dlpi_phnum))
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X)) {
      openMpBegin = library->dlpi_addr + part.p_vaddr;
      openMpEnd = openMpBegin + part.p_memsz;
    }
  return 1;
}

} // namespace

bool spareOpenMp() {
  dl_iterate_phdr(findOpenMp, nullptr);
  return openMpEnd != 0;
}

} // namespace hone::test

using hone::test::allocate;
using hone::test::failsFor;
using hone::test::injection;

extern "C" {
#define HONE_CALLER __builtin_return_address(0)
void *malloc(size_t bytes) {
  return allocate(HONE_CALLER, [=] { return HONE_BENEATH(malloc)(bytes); });
}
void *calloc(size_t count, size_t bytes) {
  return allocate(HONE_CALLER, [=] { return HONE_BENEATH(calloc)(count, bytes); });
}
void *realloc(void *memory, size_t bytes) {
  if (!memory)
    return allocate(HONE_CALLER, [=] { return HONE_BENEATH(malloc)(bytes); });
  return failsFor(HONE_CALLER) ? (errno = ENOMEM, nullptr) : HONE_BENEATH(realloc)(memory, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  return allocate(HONE_CALLER, [=] { return HONE_BENEATH(memalign)(alignment, bytes); });
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return allocate(HONE_CALLER, [=] { return HONE_BENEATH(memalign)(alignment, bytes); });
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = allocate(HONE_CALLER, [=] { return HONE_BENEATH(memalign)(alignment, bytes); });
  return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
  injection.live -= memory != nullptr;
  HONE_BENEATH(free)(memory);
}
#undef HONE_CALLER
}

#if __has_feature(address_sanitizer)
// The operators of AddressSanitizer would go past the functions above, unlike those of libstdc++.
namespace {
void *orThrow(void *memory) { return memory ? memory : throw std::bad_alloc(); }
void *alignedTo(std::align_val_t alignment, size_t bytes) { return memalign(static_cast<size_t>(alignment), bytes); }
} // namespace

#define HONE_OPERATORS(suffix)                                                                                         \
  void *operator new suffix(size_t bytes) { return orThrow(malloc(bytes)); }                                           \
  void *operator new suffix(size_t bytes, const std::nothrow_t &) noexcept { return malloc(bytes); }                   \
  void *operator new suffix(size_t bytes, std::align_val_t to) { return orThrow(alignedTo(to, bytes)); }               \
  void *operator new suffix(size_t bytes, std::align_val_t to, const std::nothrow_t &) noexcept {                      \
    return alignedTo(to, bytes);                                                                                       \
  }                                                                                                                    \
  void operator delete suffix(void *memory) noexcept { free(memory); }                                                 \
  void operator delete suffix(void *memory, size_t) noexcept { free(memory); }                                         \
  void operator delete suffix(void *memory, std::align_val_t) noexcept { free(memory); }                               \
  void operator delete suffix(void *memory, size_t, std::align_val_t) noexcept { free(memory); }                       \
  void operator delete suffix(void *memory, const std::nothrow_t &) noexcept { free(memory); }                         \
  void operator delete suffix(void *memory, std::align_val_t, const std::nothrow_t &) noexcept { free(memory); }

HONE_OPERATORS()
HONE_OPERATORS([])
#undef HONE_OPERATORS
#endif
