// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artefacts of the target `cuda` on an emulated GPU: results, one sentence for each way to be wrong, and what a fault leaves.

#include "core/module.h"
#include "device_support.h"

#include <cstdlib>
#include <numeric>

namespace hone::test {
namespace {

using rt::Module;
using rt::NamedTensor;
using rt::Session;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Where the emulated driver writes its counters, which it asks for when it is first used.
struct Report {
  Report() { setenv("HONE_EMULATED_REPORT", file.c_str(), /*overwrite=*/1); }

  TemporaryFolder temporary;
  std::string file = temporary.file("report.json");
};
const Report report;

class Devices : public testing::Test {
protected:
  void SetUp() override { writeToy(folder, "cuda"); }

  std::shared_ptr<const Module> load() {
    auto module = Module::load(folder);
    EXPECT_TRUE(module.ok()) << messageOf(module);
    return *module;
  }

  /// Loads the toy with another manifest.
  std::string loadMessage(const std::function<void(io::Manifest &)> &change) {
    io::Manifest manifest = *io::readManifest(folder + "/manifest.json");
    change(manifest);
    EXPECT_EQ(messageOf(io::writeFile(folder + "/manifest.json", io::manifestText(manifest))), "OK");
    signArtefact(folder);
    return messageOf(Module::load(folder));
  }

  static std::vector<float> sum(const Module &module, std::vector<float> elements) {
    int64_t batch = static_cast<int64_t>(elements.size()) / 3;
    Array x = makeArray<float>(HONE_F32, {batch, 3}, elements);
    NamedTensor inputs[] = {{"x", x.view()}, {"y", x.view()}};
    auto outputs = module.call("main", inputs);
    EXPECT_TRUE(outputs.ok()) << messageOf(outputs);
    EXPECT_THAT(elementsOf<int64_t>((*outputs)[1]), ElementsAre(batch));
    return elementsOf<float>((*outputs)[0]);
  }

  static std::string feed(Session &session, std::vector<int64_t> tokens) {
    Array array = makeArray<int64_t>(HONE_I64, {1, static_cast<int64_t>(tokens.size())}, tokens);
    NamedTensor inputs[] = {{"tokens", array.view()}};
    return messageOf(session.forward(inputs));
  }

  static std::string hog(const Module &module, int64_t bytes) {
    Array array = makeArray<int64_t>(HONE_I64, {}, {bytes});
    NamedTensor inputs[] = {{"bytes", array.view()}};
    return messageOf(module.call("hog", inputs));
  }

  /// Bytes that were copied to the GPU so far, as the emulated driver counts them.
  static uint64_t bytesToDevice() {
    std::string text = *io::readFile(report.file), bytes = "\"bytes\": ";
    return std::stoull(text.substr(text.find(bytes, text.find("\"to_device\"")) + bytes.size()));
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
};

TEST_F(Devices, CallAnEntry) {
  auto module = load();
  EXPECT_THAT(sum(*module, {1, 2, 3, 4, 5, 6}), ElementsAre(102, 204, 306, 108, 210, 312));
  EXPECT_THAT(sum(*module, {1, 1, 1}), ElementsAre(102, 202, 302)) << "smaller, in the memory of the call before";
  EXPECT_THAT(sum(*module, {}), ElementsAre()) << "no elements, no launch";
}

TEST_F(Devices, AProgramsFailureEndsTheCallAlone) {
  auto module = load();
  Array bad = makeArray<float>(HONE_F32, {1, 3}, {-1, 2, 3});
  NamedTensor inputs[] = {{"x", bad.view()}, {"y", bad.view()}};
  EXPECT_EQ(messageOf(module->call("main", inputs)), "expected x to begin with a positive number");
  EXPECT_THAT(sum(*module, {1, 1, 1}), ElementsAre(102, 202, 302));
}

TEST_F(Devices, CopiesLargerThanPinnedMemoryArrive) {
  auto module = load();
  for (int64_t count : {int64_t{21} << 20, int64_t{5}, int64_t{8} << 20}) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
    Array input = makeArray<uint8_t>(HONE_U8, {count}, bytes);
    NamedTensor inputs[] = {{"bytes", input.view()}};
    auto outputs = module->call("echo", inputs);
    ASSERT_TRUE(outputs.ok()) << messageOf(outputs);
    EXPECT_TRUE(elementsOf<uint8_t>((*outputs)[0]) == bytes) << count << " bytes";
  }
}

TEST_F(Devices, SayHowMuchMemoryIsMissing) {
  auto module = load();
  EXPECT_THAT(hog(*module, int64_t{1} << 50),
              AllOf(HasSubstr("cannot allocate 1125899906842624 bytes of GPU memory for the buffers of the call: "),
                    HasSubstr(" bytes are free")));
  EXPECT_THAT(hog(*module, -1), HasSubstr("cannot allocate")) << "more than a sum of bytes can be";
  EXPECT_EQ(hog(*module, 4096), "OK");
}

TEST_F(Devices, AFaultIsNamedAndEndsTheGpuForTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [&] {
    auto module = load();
    auto session = *Session::create(module), witness = *Session::create(module);
    std::string text = feed(*session, {1, 2}) + feed(*witness, {1}) + "\n" + feed(*session, {3, 77, 1}) + "\n" +
                       feed(*session, {3}) + "\n" + feed(*witness, {3}) + "\n" + messageOf(Session::create(module)) +
                       "\n" + messageOf(Module::load(folder)) + "\n";
    std::fputs(text.c_str(), stderr);
    std::exit(0);
  };
  const char *goOn = "cannot go on after the fault of a kernel: this process cannot use the GPU any more; begin "
                     "another one\n";
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              AllOf(HasSubstr("OKOK\nkernel 'toy_fault' failed on the "), HasSubstr(": CUDA_ERROR_ILLEGAL_ADDRESS ("),
                    HasSubstr("what sessions had on the GPU is lost, and this process cannot use it any more\n"),
                    HasSubstr(std::string(goOn) + goOn +
                              "cannot open the GPU: a kernel of this "
                              "process failed there before (CUDA_ERROR_ILLEGAL_ADDRESS")));
}

TEST_F(Devices, ContextIsCopiedWhenItIsSet) {
  if (hasOwnDriver())
    GTEST_SKIP() << "only an emulated driver counts copies";
  EXPECT_EQ(loadMessage([](io::Manifest &manifest) { manifest.entries[4].inputs[0].isContext = true; }), "OK");
  auto module = load();
  auto session = *Session::create(module, "echo");
  for (std::vector<uint8_t> bytes : {std::vector<uint8_t>(5000, 1), std::vector<uint8_t>(5000, 2)}) {
    Array context = makeArray<uint8_t>(HONE_U8, {5000}, bytes);
    NamedTensor inputs[] = {{"bytes", context.view()}};
    ASSERT_EQ(messageOf(session->setContext(inputs)), "OK");
    uint64_t before = bytesToDevice();
    for (int call = 0; call < 4; ++call) {
      auto outputs = session->forward({});
      ASSERT_TRUE(outputs.ok()) << messageOf(outputs);
      EXPECT_TRUE(elementsOf<uint8_t>((*outputs)[0]) == bytes);
      EXPECT_EQ(bytesToDevice() - before, 5000) << "after call " << call;
    }
  }
}

TEST_F(Devices, StepsOfOneShapeAreOneLaunch) {
  auto module = load();
  auto session = *Session::create(module), other = *Session::create(module);
  for (int64_t step = 0; step < 100; ++step) { // as text is written
    Array token = makeArray<int64_t>(HONE_I64, {1, 1}, {step % 8});
    NamedTensor inputs[] = {{"tokens", token.view()}};
    auto logits = session->forward(inputs);
    ASSERT_TRUE(logits.ok()) << messageOf(logits);
    std::span<const float> row = (*logits)[0].as<float>();
    int64_t sum = step * (step + 1) / 2; // of 0 … step, and modulo 8 that of the tokens
    ASSERT_EQ(std::ranges::max_element(row) - row.begin(), sum % 8) << "step " << step;
    ASSERT_EQ(feed(*other, std::vector<int64_t>(static_cast<size_t>(1 + step % 2), 1)), "OK");
  }
  EXPECT_EQ(session->state().length(), 100);
}

TEST_F(Devices, AFaultInAGraphIsOfAStep) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [&] {
    auto module = load();
    auto session = *Session::create(module);
    for (int64_t step = 0; step < 4; ++step)
      feed(*session, {step});
    std::fputs(feed(*session, {77}).c_str(), stderr);
    std::exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), HasSubstr("a kernel of a step failed on the "));
}

TEST_F(Devices, SampleTokensFromTheirLogits) {
  auto module = load();
  auto session = *Session::create(module);
  ASSERT_TRUE(session->isOnDevice());
  auto sample = [&](std::vector<int64_t> tokens) {
    Array array = makeArray<int64_t>(HONE_I64, {1, static_cast<int64_t>(tokens.size())}, tokens);
    NamedTensor inputs[] = {{"tokens", array.view()}};
    auto token = session->sample(inputs, 0);
    EXPECT_TRUE(token.ok()) << messageOf(token);
    return token.value_or(-1);
  };
  session->beginSampling({}, {});
  EXPECT_EQ(sample({1, 2}), 3) << "the sum modulo 8";
  EXPECT_EQ(sample({3}), 6) << "the token that the device has already";
  for (int64_t sum = 6, step = 0; step < 5; ++step) {
    EXPECT_EQ(sample({1}), (sum + 1) % 8) << "another one";
    sum = (sum + 1) % 8;
    EXPECT_EQ(sample({sum}), 2 * sum % 8);
    sum = 2 * sum % 8;
  }
  ASSERT_EQ(feed(*session, {5}), "OK") << "logits are handed over as before";
  // Unless its logit is that of the history's, the likeliest is kept alone; else all are alike, and number 0 falls on the first.
  sampling::SamplingOptions options = {.temperature = 1, .minP = 0.5, .repetitionPenalty = 1e6};
  auto sampleFirst = [&] {
    session->state().reset();
    return sample({1, 2});
  };
  session->beginSampling(options, {3});
  EXPECT_EQ(sampleFirst(), 0);
  session->beginSampling(options, {});
  EXPECT_EQ(sampleFirst(), 3);
  EXPECT_EQ(sampleFirst(), 0) << "what was sampled is in the history";
}

TEST_F(Devices, ManifestsThatDoNotFitAreRefused) {
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device->services = 99; }),
              HasSubstr("unsupported version 99 of device services; supported: 2"));
  writeToy(folder, "cuda");
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device->file = "other.fatbin"; }),
              HasSubstr("expected files to list other.fatbin"));
  writeToy(folder, "cuda");
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device->kernels[2] = "toy_other"; }),
              HasSubstr("device.fatbin: has no kernel 'toy_other', which the manifest lists"));
  writeToy(folder, "cuda");
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device->kernels.resize(1); }), "OK");
  EXPECT_THAT(feed(**Session::create(load()), {1}),
              HasSubstr("the program launches kernel 1, but the manifest lists 1"));
  writeToy(folder, "cuda");
  EXPECT_THAT(
      loadMessage([](io::Manifest &manifest) { manifest.states[0].slots[0].layout = io::StateLayout::KeyBlocks; }),
      HasSubstr("unsupported layout key_blocks of state 'history' on a device; supported: rows"));
  writeToy(folder, "cuda");
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device.reset(); }),
              HasSubstr("expected a member 'device' for the target 'cuda'"));
}

TEST_F(Devices, AnotherChipIsRefused) {
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) { manifest.device->chip = "sm_900"; }),
              AllOf(HasSubstr("this artefact was built for sm_900, and this GPU, "), HasSubstr(", is sm_")));
}

TEST_F(Devices, FilesThatAreNoFatBinariesAreRefused) {
  auto replace = [&](const std::string &bytes) {
    EXPECT_EQ(messageOf(io::writeFile(folder + "/device.fatbin", bytes)), "OK");
    return loadMessage([&](io::Manifest &manifest) { manifest.fileBytes["device.fatbin"] = bytes.size(); });
  };
  std::string whole = *io::readFile(folder + "/device.fatbin");
  EXPECT_THAT(replace("no kernels at all"), HasSubstr("device.fatbin: not a fat binary of CUDA"));
  EXPECT_THAT(replace(""), HasSubstr("device.fatbin: not a fat binary of CUDA"));
  EXPECT_THAT(replace(whole.substr(0, 64)), HasSubstr("bytes after a header of 16, but the file has 64"));
}

TEST_F(Devices, ProgramsOfTheCpuHaveNoDeviceServices) {
  EXPECT_THAT(loadMessage([](io::Manifest &manifest) {
                manifest.target = "cpu";
                manifest.device.reset();
              }),
              HasSubstr("needs hone_rt_device_weights, "));
}

} // namespace
} // namespace hone::test
