// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device samples the same tokens as the host's sampler.

#include "cuda/kernels/fatbin_index.h"
#include "cuda/kernels/sampling/sampling.h"
#include "hone/sampling/arithmetic.h"
#include "hone/sampling/sampler.h"
#include "parity.h"

namespace hone::test {
namespace {

using cuda::SamplingArguments;
using sampling::Sampler;
using sampling::SamplingOptions;

template <typename Element> std::vector<uint8_t> bytesOf(const std::vector<Element> &elements) {
  std::vector<uint8_t> bytes(elements.size() * sizeof(Element));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

/// Sampling of one text on the device, as the runtime does it.
class DeviceSampler {
public:
  DeviceSampler(TestDevice &device, const SamplingOptions &options, int64_t vocabulary,
                const std::vector<int32_t> &history, int32_t inputBytes)
      : device(device), options(options), vocabulary(vocabulary), layout(cuda::layOutSampler(vocabulary)) {
    std::vector<uint8_t> first(static_cast<size_t>(layout.bytes), 0xff);
    std::fill_n(first.begin(), layout.blockMax, uint8_t{0});
    for (int32_t token : history)
      first[static_cast<size_t>(layout.seen + token)] = 1;
    memory = static_cast<char *>(device.upload(first));
    input = device.upload(std::vector<uint8_t>(8, 0xff));
    this->inputBytes = inputBytes;
  }
  ~DeviceSampler() {
    device.release(memory);
    device.release(input);
  }

  int64_t sample(const std::vector<float> &logits, uint64_t draw) {
    void *row = device.upload(bytesOf(logits));
    SamplingArguments args = {static_cast<const float *>(row),
                              vocabulary,
                              at<cuda::SamplerState>(0),
                              at<cuda::MaxLogit>(layout.blockMax),
                              at<uint64_t>(layout.weights),
                              options.repetitionPenalty == 1 ? nullptr : at<uint8_t>(layout.seen),
                              options.temperature,
                              options.topP,
                              options.minP,
                              options.repetitionPenalty,
                              options.topK,
                              draw,
                              at<int64_t>(layout.token),
                              input,
                              inputBytes};
    void *arguments[] = {&args};
    auto blocks = static_cast<uint32_t>(cuda::logitBlocks(vocabulary));
    device.launch({cuda::kSamplingFatbin, "argmax_logits"}, {{blocks, 1, 1}, {cuda::kLogitThreads, 1, 1}, 0},
                  arguments);
    if (options.temperature != 0) {
      device.launch({cuda::kSamplingFatbin, "exp_logits"}, {{blocks, 1, 1}, {cuda::kLogitThreads, 1, 1}, 0}, arguments);
      device.launch({cuda::kSamplingFatbin, "sample_token"}, {{1, 1, 1}, {cuda::kSampleThreads, 1, 1}, 0}, arguments);
    }
    device.wait();
    device.release(row);
    return read(args.token);
  }

  /// The token that the next call reads.
  int64_t nextInput() {
    int64_t word = read(input);
    return inputBytes == 4 ? static_cast<int32_t>(word) : word;
  }

private:
  template <typename Element> Element *at(int64_t offset) { return reinterpret_cast<Element *>(memory + offset); }
  int64_t read(void *from) {
    std::vector<uint8_t> bytes(8);
    device.download(from, bytes);
    int64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    return word;
  }

  TestDevice &device;
  SamplingOptions options;
  int64_t vocabulary;
  cuda::SamplerLayout layout;
  char *memory;
  void *input;
  int32_t inputBytes;
};

class SamplingParity : public DeviceTest<SamplingOptions> {
protected:
  /// Logits that are often equal, some of them excluded.
  std::vector<float> logitsOf(int64_t vocabulary, double spread) {
    std::vector<float> logits(static_cast<size_t>(vocabulary));
    std::normal_distribution<double> normal(0, spread);
    std::uniform_int_distribution<int> kind(0, 19);
    for (float &logit : logits) {
      logit = static_cast<float>(kind(random) < 8 ? std::round(normal(random)) : normal(random));
      if (int k = kind(random); k == 0)
        logit = -INFINITY;
      else if (k == 1)
        logit = -0.0f;
    }
    logits[static_cast<size_t>(vocabulary / 2)] = 1;
    return logits;
  }

  std::mt19937 random{11};
};

TEST_P(SamplingParity, SamplesTheTokensOfTheHost) {
  const SamplingOptions &options = GetParam();
  for (int64_t vocabulary : {1, 2, 33, 512, 1000, 5003}) {
    auto last = static_cast<int32_t>(vocabulary - 1);
    std::vector<int32_t> history = {0, last, 0};
    Sampler sampler = *Sampler::create(options), generator = *Sampler::create(options);
    DeviceSampler deviceSampler(*device, options, vocabulary, history, vocabulary == 33 ? 4 : 8);
    for (double spread : {0.0, 0.7, 3.0, 30.0}) {
      std::vector<float> logits = logitsOf(vocabulary, spread);
      int32_t expected = *sampler.sample(logits, history);
      int64_t sampled = deviceSampler.sample(logits, options.temperature == 0 ? 0 : generator.draw());
      ASSERT_EQ(sampled, expected) << vocabulary << " tokens, spread " << spread;
      EXPECT_EQ(deviceSampler.nextInput(), sampled);
      history.push_back(expected);
    }
  }
}

TEST_P(SamplingParity, ReportsBadLogitsAndGoesOn) {
  DeviceSampler deviceSampler(*device, GetParam(), 2000, {}, 8);
  std::vector<float> logits(2000, 1.0f);
  logits[1500] = NAN, logits[1999] = INFINITY;
  EXPECT_EQ(deviceSampler.sample(logits, 1), sampling::badLogitCode(1500, false));
  logits[1400] = INFINITY;
  EXPECT_EQ(deviceSampler.sample(logits, 1), sampling::badLogitCode(1400, true));
  EXPECT_EQ(deviceSampler.sample(std::vector<float>(2000, -INFINITY), 1), sampling::kNoFiniteLogit);
  std::vector<float> one(2000, -INFINITY);
  one[7] = -3;
  EXPECT_EQ(deviceSampler.sample(one, 1), 7);
}

INSTANTIATE_TEST_SUITE_P(Options, SamplingParity,
                         testing::Values(SamplingOptions{}, SamplingOptions{.repetitionPenalty = 1.3},
                                         SamplingOptions{.temperature = 1, .seed = 1},
                                         SamplingOptions{.temperature = 0.3, .seed = 2},
                                         SamplingOptions{.temperature = 50, .seed = 3},
                                         SamplingOptions{.temperature = 1, .topK = 1, .seed = 4},
                                         SamplingOptions{.temperature = 1, .topK = 40, .seed = 5},
                                         SamplingOptions{.temperature = 1, .topP = 0.9, .seed = 6},
                                         SamplingOptions{.temperature = 2, .topP = 0, .seed = 7},
                                         SamplingOptions{.temperature = 1.5, .minP = 0.05, .seed = 8},
                                         SamplingOptions{.temperature = 1, .repetitionPenalty = 0.6, .seed = 9},
                                         SamplingOptions{1.3, 7, 0.93, 0.05, 1.2, 10},
                                         SamplingOptions{4, 300, 0.5, 0, 1.2, 11}));

} // namespace
} // namespace hone::test
