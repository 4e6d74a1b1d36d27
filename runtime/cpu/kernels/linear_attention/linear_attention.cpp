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

/// Calls of at most so many tokens run one token after the other: what verification of a draft computes is then what decoding computes, to
/// the last bit. A chunk takes as long as 8 (AVX-512) to 11 (AVX2) tokens of it.
constexpr int64_t kMostRecurrent = 16;

/// After whole chunks, so many tokens are not worth another one.
constexpr int64_t kMostLeft = 7;

/// How many tokens of a call run in chunks.
int64_t countChunked(int64_t tokens) {
  if (tokens <= kMostRecurrent)
    return 0;
  int64_t left = tokens % kChunk;
  return left <= kMostLeft ? tokens - left : tokens;
}

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

void run(const Call &call) {
  const hone_tensor &next = call.operands.next;
  if (isAbsent(next)) // keys have no elements, or nothing has any
    return clear(call.operands.out);
  Problem problem(call);
  int64_t heads = problem.heads, count = next.sizes[0] * heads;
  int64_t chunked = countChunked(problem.tokens);
  int64_t work = count * problem.keySize * problem.valueSize * larger(problem.tokens, 1);
  auto stateOf = [&](const hone_tensor &tensor, int64_t i) {
    return i < count ? HeadState(tensor, i / heads, i % heads) : HeadState();
  };
  parallelFor(count, work > 16384, [&](int64_t i) {
    HeadState from = stateOf(problem.o.state, i), to = stateOf(next, i), coming = stateOf(problem.o.state, i + 1);
    if (chunked > 0)
      ChunkedHead(problem, i / heads, i % heads, chunked).run(from, to, coming);
    if (chunked == 0 || chunked < problem.tokens)
      runRecurrent(problem, i / heads, i % heads, chunked, chunked > 0 ? to : from, to, coming);
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/linear_attention.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
