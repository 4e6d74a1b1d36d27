// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory and launches of sampling.

#include "cuda/token_sampler.h"

namespace hone::rt::cuda {

using hone::cuda::kLogitThreads;
using hone::cuda::kSampleThreads;
using hone::cuda::SamplingArguments;

void TokenSampler::begin(const sampling::SamplingOptions &newOptions, std::vector<int32_t> newHistory) {
  options = newOptions;
  history = std::move(newHistory);
  vocabulary = 0;
}

void TokenSampler::setInput(CUdeviceptr newInput, int32_t bytes) {
  input = newInput;
  inputBytes = bytes;
}

/// The state that sampling finds at the first token of a text.
absl::Status TokenSampler::fill(Staging &staging) {
  std::vector<uint8_t> first(static_cast<size_t>(layout.blockMax));
  for (int32_t token : history)
    if (token >= 0 && token < vocabulary)
      first[static_cast<size_t>(layout.seen + token)] = 1;
  history.clear();
  return staging.upload(memory.address(), first.data(), first.size());
}

absl::StatusOr<SamplingArguments> TokenSampler::prepare(Staging &staging, CUdeviceptr logits, int64_t tokens,
                                                        uint64_t draw) {
  if (vocabulary != tokens) {
    vocabulary = tokens;
    layout = hone::cuda::layOutSampler(tokens);
    HONE_RETURN_IF_ERROR(memory.reserve(static_cast<uint64_t>(layout.bytes), "sampling of tokens"));
    HONE_RETURN_IF_ERROR(fill(staging));
  }
  auto at = [&](int64_t offset) { return static_cast<char *>(memory.data()) + offset; };
  SamplingArguments args = {};
  args.logits = reinterpret_cast<const float *>(logits);
  args.vocabulary = vocabulary;
  args.state = reinterpret_cast<hone::cuda::SamplerState *>(at(0));
  args.blockMax = reinterpret_cast<hone::cuda::MaxLogit *>(at(layout.blockMax));
  args.weights = reinterpret_cast<uint64_t *>(at(layout.weights));
  args.seen = options.repetitionPenalty == 1 ? nullptr : reinterpret_cast<uint8_t *>(at(layout.seen));
  args.temperature = options.temperature;
  args.topP = options.topP;
  args.minP = options.minP;
  args.penalty = options.repetitionPenalty;
  args.topK = options.topK;
  args.draw = draw;
  args.token = reinterpret_cast<int64_t *>(at(layout.token));
  args.input = reinterpret_cast<void *>(input);
  args.inputBytes = inputBytes;
  return args;
}

std::vector<TokenSampler::Launch> TokenSampler::launches() const {
  auto blocks = static_cast<uint32_t>(hone::cuda::logitBlocks(vocabulary));
  hone::cuda::LaunchShape wide = {{blocks, 1, 1}, {kLogitThreads, 1, 1}, 0};
  if (options.temperature == 0)
    return {{"argmax_logits", wide}};
  return {{"argmax_logits", wide}, {"exp_logits", wide}, {"sample_token", {{1, 1, 1}, {kSampleThreads, 1, 1}, 0}}};
}

} // namespace hone::rt::cuda
