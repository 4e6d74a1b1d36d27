// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choosing a token from a row of logits: what host and device say to each other. The arithmetic is text/sampling_arithmetic.h, so that the
// tokens are those of text/sampling.h.

#ifndef HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H
#define HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H

#include "../host_device.h"

namespace hone::cuda {

constexpr int32_t kLogitThreads = 256, kPickThreads = 512; // of a block
constexpr int64_t kLogitsOfBlock = 1024, kMostLogitBlocks = 128;

/// The largest of some logits, of equals the first, and the first logit that is no number or infinite.
struct LargestLogit {
  double logit;
  int64_t id;
  int64_t bad; // 2 · id + 1 where it is infinite, 2 · id where it is no number; kNoBadLogit
};

constexpr int64_t kNoBadLogit = INT64_MAX;

/// What choices of one text keep on the device. Zeros and what is in the history before the first.
struct ChoiceState {
  LargestLogit largest; // of all logits
  uint32_t arrived;     // blocks of the launch that have theirs
};

struct ChoiceArguments {
  const float *logits;
  int64_t vocabulary;
  ChoiceState *state;
  LargestLogit *largest; // of each block
  uint64_t *weights;     // of each token
  uint8_t *seen;         // 1 for tokens in the history; null where nothing is penalized
  double temperature, topP, minP, penalty;
  int64_t topK;
  uint64_t number;    // of the generator
  int64_t *token;     // the choice, or why there is none: a code of sampling_arithmetic.h
  void *input;        // where the next call has its token too, or null
  int32_t inputBytes; // of it: 4 or 8
};

/// Memory of the choices of one text in one piece: the state, tokens that were seen, largest logits of blocks, weights and the choice.
struct ChoiceLayout {
  int64_t seen, largest, weights, token, bytes;
};

HONE_HOST_DEVICE constexpr int64_t logitBlocks(int64_t vocabulary) {
  int64_t blocks = divideUp(vocabulary, kLogitsOfBlock);
  return blocks < kMostLogitBlocks ? blocks : kMostLogitBlocks;
}

HONE_HOST_DEVICE constexpr ChoiceLayout layOutChoices(int64_t vocabulary) {
  constexpr int64_t kAlignment = 64;
  ChoiceLayout layout = {};
  layout.seen = roundUp(sizeof(ChoiceState), kAlignment);
  layout.largest = layout.seen + roundUp(vocabulary, kAlignment);
  layout.weights =
      layout.largest + roundUp(logitBlocks(vocabulary) * static_cast<int64_t>(sizeof(LargestLogit)), kAlignment);
  layout.token = layout.weights + roundUp(8 * vocabulary, kAlignment);
  layout.bytes = layout.token + kAlignment;
  return layout;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H
