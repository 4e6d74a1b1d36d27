// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, tensors and medians of the ratios.

#include "measure.h"

#include "hone/io/array.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace hone::bench {

Pool::Pool(const Options &options) : bytes(static_cast<size_t>(options.poolBytes)) {
  memory = static_cast<uint8_t *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) {
    std::perror("cannot map memory for weights");
    std::exit(1);
  }
  madvise(memory, bytes, options.hugePages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  // No byte pattern of it is a number that arithmetic is slow with.
  for (size_t i = 0; i < bytes; ++i)
    memory[i] = static_cast<uint8_t>(0x30 + i % 11);
}

Pool::~Pool() { munmap(memory, bytes); }

hone_tensor viewOf(void *data, hone_dtype dtype, std::vector<int64_t> sizes) {
  return io::denseView(data, dtype, sizes);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void takeTurns(const Options &options, const std::function<void(bool counts)> &turn) {
  for (int i = 0; i <= options.repeats; ++i)
    turn(i > 0);
}

bool isWanted(const Options &options, const std::string &name) {
  return name.find(options.filter) != std::string::npos;
}

} // namespace hone::bench
