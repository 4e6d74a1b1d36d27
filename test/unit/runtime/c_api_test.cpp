// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface through the shared library: the same things as in C++, and no argument that crashes it.

#include "hone/runtime/hone.h"
#include "support.h"

#include <cmath>
#include <thread>

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CApi : public testing::Test {
protected:
  void SetUp() override {
    io::Manifest manifest = toyManifest();
    manifest.tokenizer = "tokenizer.json";
    writeArtefact(folder, HONE_TEST_PROGRAM, manifest);
    std::string json = R"({"version":"1.0","added_tokens":[],"decoder":{"type":"ByteLevel"},"model":{"type":"BPE",)"
                       R"("merges":[],"vocab":{"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7}}})";
    ASSERT_EQ(messageOf(io::writeFile(folder + "/tokenizer.json", json)), "OK");
    signArtefact(folder);
    ASSERT_EQ(hone_module_open(folder.c_str(), &module), HONE_OK) << hone_last_error();
    ASSERT_EQ(hone_session_open(module, nullptr, &session), HONE_OK) << hone_last_error();
  }

  void TearDown() override {
    hone_session_close(session);
    hone_module_close(module);
  }

  hone_outputs *callMain(Array &x, Array &y) {
    hone_named_tensor inputs[] = {{"x", x.view()}, {"y", y.view()}};
    hone_outputs *outputs = nullptr;
    EXPECT_EQ(hone_module_call(module, "main", inputs, 2, 0, &outputs), HONE_OK) << hone_last_error();
    return outputs;
  }

  std::vector<int64_t> generate(hone_session *target, std::vector<int64_t> prompt, hone_generation_options options) {
    std::vector<int64_t> tokens;
    auto collect = [](void *user, int64_t token, const char *, size_t) {
      static_cast<std::vector<int64_t> *>(user)->push_back(token);
      return 0;
    };
    EXPECT_EQ(hone_session_generate(target, prompt.data(), prompt.size(), &options, collect, &tokens), HONE_OK)
        << hone_last_error();
    return tokens;
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
  hone_module *module = nullptr;
  hone_session *session = nullptr;
};

TEST_F(CApi, HasVersions) {
  EXPECT_STREQ(hone_version(), "0.1.0");
  EXPECT_EQ(hone_api_version(), HONE_API_VERSION);
}

TEST_F(CApi, EndsWhereAModelHasNoMorePositions) {
  io::Manifest manifest = toyManifest();
  manifest.entries[1].limits = {{{"sequence"}, true, 4, "places"}};
  std::string limited = temporary.file("limited.hone");
  writeArtefact(limited, HONE_TEST_PROGRAM, manifest);
  hone_module *few = nullptr;
  hone_session *target = nullptr;
  ASSERT_EQ(hone_module_open(limited.c_str(), &few), HONE_OK) << hone_last_error();
  ASSERT_EQ(hone_session_open(few, nullptr, &target), HONE_OK) << hone_last_error();
  std::vector<int64_t> received, prompt = {1, 2, 3}, longer = {1, 2, 3, 4, 5};
  auto collect = [](void *user, int64_t token, const char *, size_t) {
    static_cast<std::vector<int64_t> *>(user)->push_back(token);
    return 0;
  };
  hone_generation_options options;
  hone_generation_options_init(&options);
  options.ignore_end = 1;
  options.prefill_chunk = 2;
  EXPECT_EQ(hone_session_generate(target, longer.data(), longer.size(), &options, collect, &received), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(),
               "expected at most 4 positions in a session, for which 'places' has rows, but got 0 and 5 more");
  EXPECT_EQ(hone_session_length(target), 0);
  EXPECT_TRUE(received.empty());
  EXPECT_EQ(hone_session_generate(target, prompt.data(), prompt.size(), &options, collect, &received), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("but got 4 and 1 more"));
  EXPECT_EQ(received.size(), 2u) << "one after the prompt, and one after the last position";
  EXPECT_EQ(hone_session_length(target), 4);
  hone_session_close(target);
  hone_module_close(few);
}

TEST_F(CApi, DescribesEntries) {
  ASSERT_EQ(hone_module_entry_count(module), 3u);
  EXPECT_STREQ(hone_module_entry_name(module, 1), "forward");
  EXPECT_EQ(hone_module_entry_name(module, 3), nullptr);
  size_t count = 0;
  ASSERT_EQ(hone_module_tensor_count(module, "main", HONE_INPUT, &count), HONE_OK);
  EXPECT_EQ(count, 2u);
  hone_tensor_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(hone_module_tensor_info(module, "main", HONE_INPUT, 1, &info), HONE_OK);
  EXPECT_STREQ(info.name, "y");
  EXPECT_EQ(info.dtype, HONE_F32);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.sizes[0], -1);
  EXPECT_STREQ(info.symbols[0], "batch");
  EXPECT_EQ(info.sizes[1], 3);
  EXPECT_EQ(info.symbols[1], nullptr);
  EXPECT_EQ(hone_module_tensor_info(module, "main", HONE_INPUT, 2, &info), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("has 2 tensors of that role"));
  EXPECT_EQ(hone_module_tensor_count(module, "side", HONE_INPUT, &count), HONE_INVALID);
}

TEST_F(CApi, AShorterStructStaysWithinItself) {
  struct {
    hone_tensor_info info;
    char beyond;
  } guarded;
  std::memset(&guarded, 0x55, sizeof guarded);
  guarded.info.struct_size = offsetof(hone_tensor_info, rank);
  ASSERT_EQ(hone_module_tensor_info(module, "main", HONE_OUTPUT, 0, &guarded.info), HONE_OK);
  EXPECT_STREQ(guarded.info.name, "sum");
  EXPECT_EQ(guarded.info.rank, 0x55555555);
  guarded.info.struct_size = 0;
  EXPECT_EQ(hone_module_tensor_info(module, "main", HONE_OUTPUT, 0, &guarded.info), HONE_INVALID);
}

TEST_F(CApi, CallsByName) {
  Array x = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3}), y = makeArray<float>(HONE_F32, {1, 3}, {0, 0, 0});
  hone_outputs *outputs = callMain(x, y);
  ASSERT_EQ(hone_outputs_count(outputs), 2u);
  EXPECT_STREQ(hone_outputs_name(outputs, 0), "sum");
  EXPECT_EQ(hone_outputs_name(outputs, 2), nullptr);
  hone_tensor sum;
  ASSERT_EQ(hone_outputs_get(outputs, "sum", &sum), HONE_OK);
  EXPECT_EQ(static_cast<float *>(sum.data)[2], 303);
  EXPECT_EQ(hone_outputs_get(outputs, "product", &sum), HONE_INVALID);
  hone_outputs_free(outputs);
}

TEST_F(CApi, DlpackComesInWithStridesAndOffset) {
  float memory[] = {-1, 1, 4, 2, 5, 3, 6}; // 2 x 3, column by column, after one element
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  DLTensor source = {memory, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, sizeof(float)};
  hone_named_tensor inputs[2] = {{"x", {}}, {"y", {}}};
  ASSERT_EQ(hone_tensor_from_dlpack(&source, &inputs[0].tensor), HONE_OK) << hone_last_error();
  inputs[1].tensor = inputs[0].tensor;
  hone_outputs *outputs = nullptr;
  ASSERT_EQ(hone_module_call(module, "main", inputs, 2, 0, &outputs), HONE_OK) << hone_last_error();
  hone_tensor sum;
  ASSERT_EQ(hone_outputs_get(outputs, "sum", &sum), HONE_OK);
  EXPECT_EQ(static_cast<float *>(sum.data)[1], 204);
  hone_outputs_free(outputs);
}

TEST_F(CApi, DlpackGoesOutAndOutlivesTheOutputs) {
  Array x = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3}), y = makeArray<float>(HONE_F32, {1, 3}, {0, 0, 0});
  hone_outputs *outputs = callMain(x, y);
  DLManagedTensorVersioned *managed = nullptr;
  ASSERT_EQ(hone_outputs_to_dlpack(outputs, "sum", &managed), HONE_OK) << hone_last_error();
  hone_outputs_free(outputs);
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->dl_tensor.ndim, 2);
  EXPECT_EQ(managed->dl_tensor.shape[1], 3);
  EXPECT_EQ(managed->dl_tensor.dtype.code, kDLFloat);
  EXPECT_EQ(static_cast<float *>(managed->dl_tensor.data)[0], 101);
  managed->deleter(managed);
}

TEST_F(CApi, DlpackThatIsNotForUsIsRefused) {
  int64_t shape[] = {1};
  hone_tensor tensor;
  DLTensor good = {&shape, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, shape, nullptr, 0};
  EXPECT_EQ(hone_tensor_from_dlpack(&good, &tensor), HONE_OK);
  auto refuses = [&](auto spoil) {
    DLTensor bad = good;
    spoil(bad);
    return hone_tensor_from_dlpack(&bad, &tensor) == HONE_INVALID;
  };
  EXPECT_TRUE(refuses([](DLTensor &t) { t.device.device_type = static_cast<DLDeviceType>(2); }));
  EXPECT_TRUE(refuses([](DLTensor &t) { t.ndim = 9; }));
  EXPECT_TRUE(refuses([](DLTensor &t) { t.ndim = -1; }));
  EXPECT_TRUE(refuses([](DLTensor &t) { t.shape = nullptr; }));
  EXPECT_TRUE(refuses([](DLTensor &t) { t.dtype.lanes = 4; }));
  EXPECT_TRUE(refuses([](DLTensor &t) { t.dtype.bits = 7; }));
}

TEST_F(CApi, SessionsRemember) {
  Array tokens = makeArray<int64_t>(HONE_I64, {2, 3}, {5, 5, 1, 5, 5, 1});
  hone_named_tensor input = {"tokens", tokens.view()};
  int64_t padding[] = {2, 0};
  ASSERT_EQ(hone_session_set_padding(session, padding, 2), HONE_OK);
  hone_outputs *outputs = nullptr;
  ASSERT_EQ(hone_session_forward(session, &input, 1, &outputs), HONE_OK) << hone_last_error();
  hone_tensor logits;
  ASSERT_EQ(hone_outputs_get(outputs, "logits", &logits), HONE_OK);
  EXPECT_EQ(static_cast<float *>(logits.data)[2 * 8 + 1], 1); // the first sequence's sum is 1
  EXPECT_EQ(static_cast<float *>(logits.data)[5 * 8 + 3], 1); // the second's is 11
  hone_outputs_free(outputs);
  EXPECT_EQ(hone_session_length(session), 3);
  EXPECT_EQ(hone_session_truncate(session, 1), HONE_OK);
  EXPECT_EQ(hone_session_length(session), 1);
  EXPECT_EQ(hone_session_truncate(session, 2), HONE_INVALID);
  EXPECT_EQ(hone_session_reset(session), HONE_OK);
  EXPECT_EQ(hone_session_length(session), 0);
}

TEST_F(CApi, SessionsGoBackAndFork) {
  auto feed = [](hone_session *target, std::vector<int64_t> tokens) {
    Array array = makeArray<int64_t>(HONE_I64, {1, static_cast<int64_t>(tokens.size())}, tokens);
    hone_named_tensor input = {"tokens", array.view()};
    hone_outputs *outputs = nullptr;
    EXPECT_EQ(hone_session_call(target, "forward", &input, 1, &outputs), HONE_OK) << hone_last_error();
    hone_tensor logits;
    EXPECT_EQ(hone_outputs_get(outputs, "logits", &logits), HONE_OK);
    const float *last = static_cast<float *>(logits.data) + (tokens.size() - 1) * 8;
    auto best = std::max_element(last, last + 8) - last;
    hone_outputs_free(outputs);
    return best;
  };
  EXPECT_EQ(feed(session, {1, 2, 3}), 6);
  const int64_t kept[] = {0, 2}, wrong[] = {2, 0};
  EXPECT_EQ(hone_session_keep(session, wrong, 2), HONE_INVALID);
  ASSERT_EQ(hone_session_keep(session, kept, 2), HONE_OK) << hone_last_error();
  hone_checkpoint *checkpoint = nullptr;
  ASSERT_EQ(hone_session_checkpoint(session, &checkpoint), HONE_OK);
  EXPECT_EQ(feed(session, {1}), 5);
  hone_session *fork = nullptr;
  ASSERT_EQ(hone_session_fork(session, &fork), HONE_OK) << hone_last_error();
  ASSERT_EQ(hone_session_restore(session, checkpoint), HONE_OK) << hone_last_error();
  EXPECT_EQ(feed(session, {2}), 6);
  EXPECT_EQ(feed(fork, {2}), 7);
  EXPECT_EQ(hone_session_restore(fork, checkpoint), HONE_INVALID);
  hone_session_close(fork);
  ASSERT_EQ(hone_session_reset(session), HONE_OK);
  EXPECT_EQ(hone_session_restore(session, checkpoint), HONE_INVALID);
  hone_checkpoint_free(checkpoint);
}

TEST_F(CApi, NumbersBeyondReasonAreRefused) {
  hone_session *other = nullptr;
  hone_session_options options = {sizeof options, nullptr, 100000, 0};
  EXPECT_EQ(hone_session_open(module, &options, &other), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(), "expected threads to be 0 to 4096, but got 100000");
  options = {sizeof options, nullptr, 0, INT64_MAX};
  EXPECT_EQ(hone_session_open(module, &options, &other), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(), "expected reserve to be 0 to 1099511627776, but got 9223372036854775807");
  hone_outputs *outputs = nullptr;
  EXPECT_EQ(hone_module_call(module, "main", nullptr, 0, -1, &outputs), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(), "expected threads to be 0 to 4096, but got -1");
  int64_t padding[] = {0, INT64_MAX};
  EXPECT_EQ(hone_session_set_padding(session, padding, 2), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(), "expected padding to be 0 to 1099511627776, but got 9223372036854775807");
  EXPECT_EQ(other, nullptr);
}

TEST_F(CApi, PaddingIsOfTheSequencesThereAre) {
  Array tokens = makeArray<int64_t>(HONE_I64, {1, 3}, {5, 5, 1});
  hone_named_tensor input = {"tokens", tokens.view()};
  int64_t padding[] = {2, 0};
  ASSERT_EQ(hone_session_set_padding(session, padding, 2), HONE_OK);
  hone_outputs *outputs = nullptr;
  EXPECT_EQ(hone_session_forward(session, &input, 1, &outputs), HONE_INVALID);
  EXPECT_STREQ(hone_last_error(), "expected padding of at most 1 sequences, but got 2");
  EXPECT_EQ(hone_session_length(session), 0);
  ASSERT_EQ(hone_session_set_padding(session, padding, 1), HONE_OK);
  EXPECT_EQ(hone_session_forward(session, &input, 1, &outputs), HONE_OK) << hone_last_error();
  hone_outputs_free(outputs);
}

TEST_F(CApi, MemoryThatIsNotThereIsAnError) {
  hone_session *other = nullptr;
  hone_session_options options = {sizeof options, nullptr, 0, int64_t{1} << 40};
  ASSERT_EQ(hone_session_open(module, &options, &other), HONE_OK) << hone_last_error();
  Array tokens = makeArray<int64_t>(HONE_I64, {4096, 1}, std::vector<int64_t>(4096, 1));
  hone_named_tensor input = {"tokens", tokens.view()};
  hone_outputs *outputs = nullptr;
  EXPECT_EQ(hone_session_forward(other, &input, 1, &outputs), HONE_OUT_OF_MEMORY);
  EXPECT_THAT(hone_last_error(), HasSubstr("cannot allocate 36028797018963968 bytes"));
  EXPECT_EQ(hone_session_length(other), 0);
  hone_session_close(other);
}

TEST_F(CApi, OffloadedStatesWriteTheSameText) {
  hone_generation_options generation;
  hone_generation_options_init(&generation);
  std::vector<int64_t> wanted = generate(session, {1, 2, 3}, generation);
  hone_session_options options = {sizeof options, nullptr, 0, 0, temporary.path.c_str()};
  hone_session *other = nullptr, *fork = nullptr;
  ASSERT_EQ(hone_session_open(module, &options, &other), HONE_OK) << hone_last_error();
  ASSERT_EQ(hone_session_fork(other, &fork), HONE_OK) << hone_last_error();
  EXPECT_EQ(generate(other, {1, 2, 3}, generation), wanted);
  EXPECT_EQ(generate(fork, {1, 2, 3}, generation), wanted);
  hone_session_close(fork);
  hone_session_close(other);
  options.offload = "/missing";
  EXPECT_EQ(hone_session_open(module, &options, &other), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("cannot write /missing/"));
}

TEST_F(CApi, GenerationStreams) {
  hone_generation_options options;
  hone_generation_options_init(&options);
  options.max_new_tokens = 5;
  EXPECT_THAT(generate(session, {1}, options), ElementsAre(1, 2, 4, 0, 0));
  std::string text;
  auto append = [](void *user, int64_t, const char *piece, size_t bytes) {
    static_cast<std::string *>(user)->append(piece, bytes);
    return static_cast<std::string *>(user)->size() >= 2 ? 1 : 0;
  };
  ASSERT_EQ(hone_session_reset(session), HONE_OK);
  int64_t prompt = 1;
  ASSERT_EQ(hone_session_generate(session, &prompt, 1, &options, append, &text), HONE_OK) << hone_last_error();
  EXPECT_EQ(text, "bc") << "the callback ended it";
}

TEST_F(CApi, DraftsLeaveTheTextAsItIs) {
  hone_generation_options options;
  hone_generation_options_init(&options);
  options.max_new_tokens = 60;
  options.ignore_end = 1;
  options.temperature = 0.5;
  std::vector<int64_t> plain = generate(session, {1, 2, 4}, options);
  int64_t length = hone_session_length(session);
  hone_speculation_options drafts;
  hone_speculation_options_init(&drafts);
  const int32_t matches[] = {HONE_DRAFT_LOOKUP, HONE_DRAFT_AUTOMATON}, model[] = {HONE_DRAFT_MODEL};
  for (auto [sources, count] : {std::pair(matches, 0), std::pair(matches, 2), std::pair(model, 1)}) {
    drafts.sources = sources;
    drafts.source_count = static_cast<size_t>(count);
    drafts.draft = sources == model ? module : nullptr;
    ASSERT_EQ(hone_speculation_open(session, &drafts, &options.speculation), HONE_OK) << hone_last_error();
    for (int text = 0; text < 2; ++text) { // the second one is what the first one was
      ASSERT_EQ(hone_session_reset(session), HONE_OK);
      EXPECT_EQ(generate(session, {1, 2, 4}, options), plain);
      EXPECT_EQ(hone_session_length(session), length);
    }
    hone_speculation_close(options.speculation);
  }
  hone_speculation_close(nullptr);
}

TEST_F(CApi, SpeculationIsOfAModuleAndItsEntry) {
  hone_module *again = nullptr;
  hone_session *other = nullptr;
  ASSERT_EQ(hone_module_open(folder.c_str(), &again), HONE_OK);
  ASSERT_EQ(hone_session_open(again, nullptr, &other), HONE_OK);
  hone_generation_options options;
  hone_generation_options_init(&options);
  ASSERT_EQ(hone_speculation_open(session, nullptr, &options.speculation), HONE_OK) << hone_last_error();
  int64_t prompt = 1;
  EXPECT_EQ(hone_session_generate(other, &prompt, 1, &options, nullptr, nullptr), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("expected speculation for entry 'forward' of " + folder));
  EXPECT_EQ(hone_session_length(other), 0);
  hone_session_close(other);
  hone_module_close(again);
  hone_speculation_close(options.speculation);
}

TEST_F(CApi, SpeculationOptionsAreChecked) {
  auto refuses = [&](auto spoil) {
    hone_speculation_options bad;
    hone_speculation_options_init(&bad);
    spoil(bad);
    hone_speculation *speculation = nullptr;
    return hone_speculation_open(session, &bad, &speculation) == HONE_INVALID && !speculation;
  };
  static const int32_t twice[] = {HONE_DRAFT_LOOKUP, HONE_DRAFT_LOOKUP}, unknown[] = {-1},
                       two[] = {HONE_DRAFT_MODEL, HONE_DRAFT_LOOKUP}, corpus[] = {HONE_DRAFT_CORPUS};
  auto list = [](hone_speculation_options &o, const int32_t *sources, size_t count) {
    o.sources = sources;
    o.source_count = count;
  };
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.struct_size = 0; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.source_count = 1; }));
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { list(o, twice, 2); }));
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { list(o, unknown, 1); }));
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { list(o, two, 2); }));
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { list(o, two, 1); })) << "there is no entry 'draft'";
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { list(o, corpus, 1); }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.corpus = "missing.corpus"; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.most_drafted = 0; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.most_drafted = 1025; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.draft_confidence = std::nan(""); }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.acceptance = 3; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.acceptance = HONE_ACCEPT_TYPICAL; }));
  EXPECT_TRUE(refuses([](hone_speculation_options &o) { o.trees = 1; })) << "there is no entry 'verify'";
  EXPECT_TRUE(refuses([&](hone_speculation_options &o) { o.draft = module; }));
  hone_speculation *speculation = nullptr;
  EXPECT_EQ(hone_speculation_open(nullptr, nullptr, &speculation), HONE_INVALID);
  EXPECT_EQ(hone_speculation_open(session, nullptr, nullptr), HONE_INVALID);
}

TEST_F(CApi, GenerationEndsAtStopStrings) {
  hone_generation_options options;
  hone_generation_options_init(&options);
  const char *stop[] = {"xyz", "ea"};
  options.stop = stop;
  options.stop_count = 2;
  EXPECT_THAT(generate(session, {1}, options), ElementsAre(1, 2, 4, 0));
}

TEST_F(CApi, GenerationOptionsAreChecked) {
  hone_generation_options options;
  hone_generation_options_init(&options);
  int64_t prompt = 1;
  auto refuses = [&](auto spoil) {
    hone_generation_options bad = options;
    spoil(bad);
    return hone_session_generate(session, &prompt, 1, &bad, nullptr, nullptr) == HONE_INVALID;
  };
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.struct_size = 0; }));
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.max_new_tokens = 0; }));
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.prefill_chunk = 0; }));
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.temperature = -1; }));
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.top_p = 2; }));
  EXPECT_TRUE(refuses([](hone_generation_options &o) { o.stop_count = 1; }));
  prompt = 8;
  EXPECT_TRUE(refuses([](hone_generation_options &) {}));
  EXPECT_THAT(hone_last_error(), HasSubstr("token 8 at position 0 is outside the vocabulary of 8"));
}

TEST_F(CApi, EncodesText) {
  size_t count = 0;
  ASSERT_EQ(hone_module_encode(module, "bad", nullptr, 0, &count), HONE_OK) << hone_last_error();
  ASSERT_EQ(count, 3u);
  int64_t tokens[2] = {};
  ASSERT_EQ(hone_module_encode(module, "bad", tokens, 2, &count), HONE_OK);
  EXPECT_THAT(tokens, ElementsAre(1, 0));
  EXPECT_EQ(hone_module_encode(module, "\xff", nullptr, 0, &count), HONE_INVALID);
}

TEST_F(CApi, NullIsNeverACrash) {
  hone_outputs *outputs = nullptr;
  hone_tensor tensor;
  size_t count;
  hone_named_tensor unnamed = {};
  EXPECT_EQ(hone_module_open(nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_module_call(nullptr, nullptr, nullptr, 0, 0, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_module_call(module, "main", nullptr, 2, 0, &outputs), HONE_INVALID);
  EXPECT_EQ(hone_module_call(module, "main", &unnamed, 1, 0, &outputs), HONE_INVALID);
  EXPECT_EQ(hone_module_entry_count(nullptr), 0u);
  EXPECT_EQ(hone_module_tensor_count(nullptr, nullptr, HONE_INPUT, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_module_tensor_info(nullptr, nullptr, HONE_INPUT, 0, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_outputs_count(nullptr), 0u);
  EXPECT_EQ(hone_outputs_get(nullptr, nullptr, &tensor), HONE_INVALID);
  EXPECT_EQ(hone_outputs_to_dlpack(nullptr, nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_tensor_from_dlpack(nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_open(nullptr, nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_forward(nullptr, nullptr, 0, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_set_context(nullptr, nullptr, 0), HONE_INVALID);
  EXPECT_EQ(hone_session_set_context(session, nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_length(nullptr), 0);
  EXPECT_EQ(hone_session_truncate(nullptr, 0), HONE_INVALID);
  EXPECT_EQ(hone_session_reset(nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_call(session, nullptr, nullptr, 0, &outputs), HONE_INVALID);
  EXPECT_EQ(hone_session_keep(session, nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_checkpoint(session, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_restore(session, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_fork(nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_session_keep_each(session, nullptr, nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_truncate_each(session, nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_length_of(nullptr, 0), 0);
  EXPECT_EQ(hone_session_join(nullptr, 0, nullptr), HONE_INVALID);
  hone_checkpoint_free(nullptr);
  EXPECT_EQ(hone_session_set_padding(session, nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_set_logits_to_keep(nullptr, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_set_logits_to_keep(session, -1), HONE_INVALID);
  EXPECT_EQ(hone_session_generate(nullptr, nullptr, 0, nullptr, nullptr, nullptr), HONE_INVALID);
  EXPECT_EQ(hone_module_encode(module, nullptr, nullptr, 0, &count), HONE_INVALID);
  hone_generation_options_init(nullptr);
  hone_outputs_free(nullptr);
  hone_session_close(nullptr);
  hone_module_close(nullptr);
}

TEST_F(CApi, ErrorsAreEachThreadsOwn) {
  EXPECT_EQ(hone_session_truncate(session, 5), HONE_INVALID);
  std::string other = "unset";
  std::thread([&] { other = hone_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_THAT(hone_last_error(), HasSubstr("cannot truncate"));
}

TEST_F(CApi, SessionsOutliveTheModulesHandle) {
  hone_module_close(module);
  module = nullptr;
  hone_generation_options options;
  hone_generation_options_init(&options);
  options.max_new_tokens = 1;
  EXPECT_THAT(generate(session, {3}, options), ElementsAre(3));
}

TEST_F(CApi, TheExampleProgramWrites) {
  std::string command = std::string(HONE_TEST_EXAMPLE) + " " + folder + " hhhh > " + temporary.file("out.txt");
  ASSERT_EQ(std::system(command.c_str()), 0);
  // 4 · 7 = 28 → 4, 32 → 0, and zeros from there: 64 tokens after 4, the last of which is not fed.
  EXPECT_EQ(*io::readFile(temporary.file("out.txt")), "e" + std::string(63, 'a') + "\n67 positions in the session\n");
  EXPECT_NE(std::system((std::string(HONE_TEST_EXAMPLE) + " none b 2>/dev/null").c_str()), 0);
}

} // namespace
} // namespace hone::test
