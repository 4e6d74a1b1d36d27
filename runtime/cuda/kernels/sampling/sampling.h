// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling a token from a row of logits: kernel arguments. The arithmetic is hone/sampling/arithmetic.h, so that the
// tokens are those of hone/sampling/sampler.h.

#ifndef HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H
#define HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H

#include "../host_device.h"

namespace hone::cuda {

constexpr int32_t kLogitThreads = 256, kSampleThreads = 512; // of a block
constexpr int64_t kLogitsOfBlock = 1024, kMaxLogitBlocks = 128;

/// The maximum of some logits, of equal ones the first, and the first logit that is NaN or infinite.
struct MaxLogit {
  double logit;
  int64_t id;
  int64_t bad; // 2 · id + 1 where it is infinite, 2 · id where it is NaN; kNoBadLogit
};

constexpr int64_t kNoBadLogit = INT64_MAX;

/// The state of sampling of one text on the device. Zero before the first token.
struct SamplerState {
  MaxLogit max;     // of all logits
  uint32_t arrived; // blocks of the launch that are done
};

struct SamplingArguments {
  const float *logits;
  int64_t vocabulary;
  SamplerState *state;
  MaxLogit *blockMax; // of each block
  uint64_t *weights;  // of each token
  uint8_t *seen;      // 1 for tokens in the history; null without a penalty
  double temperature, topP, minP, penalty;
  int64_t topK;
  uint64_t draw;      // a random draw
  int64_t *token;     // the token, or an error code of arithmetic.h
  void *input;        // where the next call reads its token, or null
  int32_t inputBytes; // of it: 4 or 8
};

/// The layout of the memory of one text: state, seen tokens, maxima of blocks, weights and the token.
struct SamplerLayout {
  int64_t seen, blockMax, weights, token, bytes;
};

HONE_HOST_DEVICE constexpr int64_t logitBlocks(int64_t vocabulary) {
  int64_t blocks = divideUp(vocabulary, kLogitsOfBlock);
  return blocks < kMaxLogitBlocks ? blocks : kMaxLogitBlocks;
}

HONE_HOST_DEVICE constexpr SamplerLayout layOutSampler(int64_t vocabulary) {
  constexpr int64_t kAlignment = 64;
  SamplerLayout layout = {};
  layout.seen = roundUp(sizeof(SamplerState), kAlignment);
  layout.blockMax = layout.seen + roundUp(vocabulary, kAlignment);
  layout.weights =
      layout.blockMax + roundUp(logitBlocks(vocabulary) * static_cast<int64_t>(sizeof(MaxLogit)), kAlignment);
  layout.token = layout.weights + roundUp(8 * vocabulary, kAlignment);
  layout.bytes = layout.token + kAlignment;
  return layout;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_SAMPLING_SAMPLING_H
