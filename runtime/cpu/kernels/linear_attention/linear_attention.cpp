// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention: few tokens one by one, many in chunks. Heads share nothing and are divided among threads.

#include "../entry.h"

#include "../parallel_for.h"
#include "chunked.h"
#include "recurrent.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Calls of at most so many tokens, those of decoding and verification, run one token after the other.
constexpr int64_t kMostRecurrent = 16;

void clear(const hone_tensor &out) {
  if (isAbsent(out))
    return;
  int64_t rows = countRows(out);
  for (int64_t row = 0; row < rows; ++row) {
    Row to = rowOf(out, row);
    for (int64_t i = 0; i < out.sizes[3]; ++i)
      to[i] = 0;
  }
}

void runHead(const Problem &problem, int64_t sequence, int64_t head, const float *coming, bool isChunked) {
  HeadState from(problem.o.state, sequence, head), to(problem.o.next, sequence, head);
  if (isChunked)
    ChunkedHead(problem, sequence, head).run(from, to);
  else
    runRecurrent(problem, sequence, head, from, to, coming);
}

void run(const Call &call) {
  const hone_tensor &next = call.operands.next;
  if (isAbsent(next)) // keys have no elements, or nothing has any
    return clear(call.operands.out);
  Problem problem(call);
  int64_t heads = next.sizes[0] * problem.heads;
  bool isChunked = problem.tokens > kMostRecurrent;
  parallelFor(heads, heads * problem.keySize * problem.valueSize * larger(problem.tokens, 1) > 16384, [&](int64_t i) {
    int64_t following = i + 1;
    const float *coming = following < heads
                              ? HeadState(problem.o.state, following / problem.heads, following % problem.heads).data
                              : nullptr;
    runHead(problem, i / problem.heads, i % problem.heads, coming, isChunked);
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/linear_attention.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
