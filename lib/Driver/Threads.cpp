// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether threads can be made shows only in making them.

#include "Threads.h"

#include "llvm/Support/Parallel.h"
#include "llvm/Support/Threading.h"

#include <latch>
#include <pthread.h>

namespace hone {

bool canMakeThreads(size_t count) {
  std::latch isKnown(1);
  auto wait = [](void *latch) -> void * {
    static_cast<std::latch *>(latch)->wait();
    return nullptr;
  };
  std::vector<pthread_t> threads(count);
  size_t made = 0;
  while (made < count && pthread_create(&threads[made], nullptr, wait, &isKnown) == 0)
    ++made;
  isKnown.count_down();
  for (size_t i = 0; i < made; ++i)
    pthread_join(threads[i], nullptr);
  return made == count;
}

void limitThreads(mlir::MLIRContext &context) {
  constexpr size_t pools = 2, others = 1; // MLIR's and that of llvm::parallelFor; what writes weights
  if (canMakeThreads(pools * llvm::hardware_concurrency().compute_thread_count() + others))
    return;
  context.disableMultithreading();
  llvm::parallel::strategy = llvm::hardware_concurrency(1);
}

} // namespace hone
