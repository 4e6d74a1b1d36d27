// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions, on every target: state grows, survives failures, rolls back, and is each session's own.

#include "core/module.h"
#include "device_support.h"

#include <thread>

namespace hone::test {
namespace {

using rt::Module;
using rt::NamedTensor;
using rt::Session;
using testing::ElementsAre;
using testing::HasSubstr;

class Sessions : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    writeToy(folder, GetParam());
    auto loaded = Module::load(folder);
    ASSERT_TRUE(loaded.ok()) << messageOf(loaded);
    module = *loaded;
    session = open();
  }

  std::unique_ptr<Session> open(const char *entry = "forward") {
    auto created = Session::create(module, entry);
    EXPECT_TRUE(created.ok()) << messageOf(created);
    return *std::move(created);
  }

  absl::StatusOr<std::vector<Array>> forward(Session &target, int64_t batch, std::vector<int64_t> tokens) {
    int64_t sequence = static_cast<int64_t>(tokens.size()) / batch;
    Array array = makeArray<int64_t>(HONE_I64, {batch, sequence}, tokens);
    NamedTensor inputs[] = {{"tokens", array.view()}};
    return target.forward(inputs);
  }

  /// The likeliest token after every position.
  std::vector<int64_t> next(Session &target, std::vector<int64_t> tokens, int64_t batch = 1) {
    auto outputs = forward(target, batch, tokens);
    EXPECT_TRUE(outputs.ok()) << messageOf(outputs);
    std::vector<int64_t> best;
    std::span<const float> logits = (*outputs)[0].as<float>();
    for (size_t row = 0; row < logits.size(); row += 8)
      best.push_back(std::ranges::max_element(logits.subspan(row, 8)) - logits.begin() - static_cast<int64_t>(row));
    return best;
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
  std::shared_ptr<const Module> module;
  std::unique_ptr<Session> session;
};

TEST_P(Sessions, StepsChunksAndAllAtOnceAgree) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 300; ++i) // beyond the first buffers, so that they grow
    tokens.push_back(i * 7 % 8);
  std::vector<int64_t> whole = next(*session, tokens), steps, chunks;
  auto one = open(), some = open();
  for (int64_t token : tokens)
    steps.push_back(next(*one, {token})[0]);
  for (size_t i = 0; i < tokens.size(); i += 13)
    for (int64_t best : next(*some, {tokens.begin() + i, tokens.begin() + std::min(i + 13, tokens.size())}))
      chunks.push_back(best);
  EXPECT_EQ(steps, whole);
  EXPECT_EQ(chunks, whole);
  EXPECT_EQ(session->state().length(), 300);
}

TEST_P(Sessions, GiveTheLogitsToKeep) {
  auto other = open();
  std::vector<int64_t> all = next(*session, {1, 2, 3, 4});
  EXPECT_EQ(other->state().setLogitsToKeep(2), 0);
  EXPECT_THAT(next(*other, {1, 2, 3, 4}), ElementsAre(all[2], all[3]));
  EXPECT_THAT(next(*other, {5}).size(), 1u); // fewer than are kept
  EXPECT_EQ(other->state().setLogitsToKeep(0), 2);
  EXPECT_EQ(next(*other, {6, 7}).size(), 2u);
}

TEST_P(Sessions, TruncateForgetsTheEnd) {
  next(*session, {1, 2, 3});
  ASSERT_EQ(messageOf(session->state().truncate(1)), "OK");
  EXPECT_THAT(next(*session, {4}), ElementsAre(5));
  EXPECT_EQ(session->state().length(), 2);
  EXPECT_THAT(messageOf(session->state().truncate(3)),
              HasSubstr("cannot truncate to 3 positions: the session holds 2"));
  EXPECT_THAT(messageOf(session->state().truncate(-1)), HasSubstr("cannot truncate"));
  ASSERT_EQ(messageOf(session->state().truncate(0)), "OK");
  EXPECT_THAT(next(*session, {4}), ElementsAre(4));
}

TEST_P(Sessions, AFailureLeavesTheStateAsItWas) {
  next(*session, {1, 2});
  EXPECT_EQ(messageOf(forward(*session, 1, {3, -1})), "expected tokens to be at least 0");
  EXPECT_EQ(session->state().length(), 2);
  EXPECT_THAT(next(*session, {1}), ElementsAre(4));
}

TEST_P(Sessions, AFailureAtTheBeginningFixesNothing) {
  EXPECT_FALSE(forward(*session, 2, {3, -1}).ok());
  EXPECT_THAT(next(*session, {1}), ElementsAre(1)) << "another batch size is fine";
}

TEST_P(Sessions, TheBatchSizeStays) {
  EXPECT_THAT(next(*session, {1, 2, 3, 4}, 2), ElementsAre(1, 3, 3, 7));
  EXPECT_THAT(messageOf(forward(*session, 1, {1})), HasSubstr("batch is 2 in the session's state"));
  session->state().reset();
  EXPECT_THAT(next(*session, {1}), ElementsAre(1));
}

TEST_P(Sessions, PaddingIsPerSequence) {
  ASSERT_EQ(messageOf(session->state().setPadding({2, 0})), "OK");
  EXPECT_THAT(next(*session, {5, 5, 1, 5, 5, 1}, 2), ElementsAre(0, 0, 1, 5, 2, 3));
  EXPECT_THAT(messageOf(session->state().setPadding({1})), HasSubstr("cannot set padding after 3 positions"));
  session->state().reset();
  EXPECT_THAT(messageOf(session->state().setPadding({-1})), HasSubstr("expected padding to be 0 to"));
  EXPECT_EQ(session->state().padding(0), 0);
}

TEST_P(Sessions, PaddingSurvivesAFailedFirstCall) {
  ASSERT_EQ(messageOf(session->state().setPadding({1})), "OK");
  EXPECT_FALSE(forward(*session, 1, {-1}).ok());
  EXPECT_THAT(next(*session, {3, 4}), ElementsAre(0, 4));
}

TEST_P(Sessions, ReplacedStateHasNoHistory) {
  auto counting = open("count");
  for (int64_t call = 1; call <= 3; ++call)
    EXPECT_THAT(elementsOf<int64_t>((*counting->forward({}))[0]), ElementsAre(call));
  counting->state().reset();
  EXPECT_THAT(elementsOf<int64_t>((*counting->forward({}))[0]), ElementsAre(1));
}

TEST_P(Sessions, ReplacedStateReturnsToACheckpoint) {
  auto counting = open("count");
  auto count = [](Session &target) { return elementsOf<int64_t>((*target.forward({}))[0])[0]; };
  auto beginning = counting->state().checkpoint();
  EXPECT_EQ(count(*counting), 1);
  auto once = counting->state().checkpoint();
  EXPECT_EQ(count(*counting), 2);
  auto copy = counting->fork();
  ASSERT_TRUE(copy.ok()) << messageOf(copy);
  EXPECT_EQ(count(*counting), 3);
  EXPECT_EQ(count(**copy), 3);
  ASSERT_EQ(messageOf(counting->state().restore(*once)), "OK");
  EXPECT_EQ(count(*counting), 2);
  ASSERT_EQ(messageOf(counting->state().restore(*beginning)), "OK");
  EXPECT_EQ(count(*counting), 1);
}

/// What a slot holds that is replaced as a whole goes to the host and comes from there.
TEST_P(Sessions, ContentsAreReadAndSet) {
  auto counting = open("count");
  auto held = [&] {
    auto content = counting->state().slots()[0].contentOnHost();
    EXPECT_TRUE(content.ok()) << messageOf(content);
    return *static_cast<const int64_t *>(content->view.data);
  };
  ASSERT_TRUE(counting->forward({}).ok());
  ASSERT_TRUE(counting->forward({}).ok());
  EXPECT_EQ(held(), 2);
  io::Array forty = makeArray<int64_t>(HONE_I64, {1}, {40});
  hone_tensor contents[] = {forty.view()};
  ASSERT_TRUE(counting->state().setContents(contents).ok());
  forty.as<int64_t>()[0] = 0; // it is a copy
  EXPECT_EQ(held(), 40);
  ASSERT_TRUE(counting->forward({}).ok());
  EXPECT_EQ(held(), 41);
}

TEST_P(Sessions, KeepWhatVerificationAccepts) {
  next(*session, {1});
  next(*session, {2, 7, 3, 7});
  ASSERT_EQ(messageOf(session->state().keep(std::vector<int64_t>{0, 2})), "OK");
  EXPECT_EQ(session->state().length(), 3);
  EXPECT_THAT(next(*session, {4}), ElementsAre((1 + 2 + 3 + 4) % 8));
  next(*session, {5, 6});
  ASSERT_EQ(messageOf(session->state().keep({})), "OK");
  EXPECT_THAT(next(*session, {1}), ElementsAre((10 + 1) % 8));
}

TEST_P(Sessions, ReturnToACheckpoint) {
  next(*session, {1, 2});
  auto point = session->state().checkpoint();
  for (int64_t token : {3, 4, 5}) {
    EXPECT_THAT(next(*session, {token, 1}), ElementsAre((3 + token) % 8, (4 + token) % 8));
    ASSERT_EQ(messageOf(session->state().restore(*point)), "OK");
  }
  ASSERT_EQ(messageOf(session->state().truncate(1)), "OK");
  EXPECT_THAT(messageOf(session->state().restore(*point)), HasSubstr("cannot return to 2 positions"));
}

TEST_P(Sessions, BeginAsCopies) {
  ASSERT_EQ(messageOf(session->state().setPadding({1, 0})), "OK");
  next(*session, {5, 1, 2, 3}, 2);
  auto copy = session->fork();
  ASSERT_TRUE(copy.ok()) << messageOf(copy);
  EXPECT_EQ((*copy)->state().length(), 2);
  EXPECT_THAT(next(**copy, {4, 4}, 2), ElementsAre(5, 1));
  EXPECT_THAT(next(*session, {6, 7}, 2), ElementsAre(7, 4)) << "the copy changed nothing";
  EXPECT_THAT(messageOf(forward(**copy, 1, {1})), HasSubstr("batch is 2 in the session's state"));
  auto empty = open()->fork();
  ASSERT_TRUE(empty.ok()) << messageOf(empty);
  EXPECT_THAT(next(**empty, {4}), ElementsAre(4));
}

TEST_P(Sessions, ShareTheirStateAmongEntries) {
  std::string shared = temporary.file("shared.hone");
  writeToy(shared, GetParam(), toyManifestWithVerification());
  module = *Module::load(shared);
  session = open();
  next(*session, {1, 2});
  Array tokens = makeArray<int64_t>(HONE_I64, {1, 3}, {3, 3, 4});
  NamedTensor inputs[] = {{"tokens", tokens.view()}};
  auto outputs = session->call("verify", inputs);
  ASSERT_TRUE(outputs.ok()) << messageOf(outputs);
  EXPECT_EQ(session->state().length(), 5);
  ASSERT_EQ(messageOf(session->state().keep(std::vector<int64_t>{1, 2})), "OK");
  EXPECT_THAT(next(*session, {5}), ElementsAre((1 + 2 + 3 + 4 + 5) % 8));
  EXPECT_THAT(messageOf(session->call("count", {})),
              HasSubstr("cannot call 'count' in a session of 'forward': it keeps the state 'counter', and the session "
                        "has 'history'"));
  EXPECT_THAT(messageOf(session->call("nothing", {})), HasSubstr("no entry 'nothing'"));
  EXPECT_EQ(session->state().length(), 5);
}

TEST_P(Sessions, ShowTheirObserverWhatTheProgramShows) {
  std::vector<float> seen;
  session->setObserver([&](int64_t site, const hone_tensor &values) {
    EXPECT_EQ(site, 4);
    auto rows = io::Array::copyOf(values);
    EXPECT_THAT(rows->shape(), ElementsAre(1, 1, 2, 2));
    std::ranges::copy(rows->as<float>(), std::back_inserter(seen));
    return absl::OkStatus();
  });
  next(*session, {3, 5});
  EXPECT_THAT(seen, ElementsAre(3, 0, 5, 1));
  next(*open(), {1, 2}); // another session's calls are its own
  session->setObserver({});
  next(*session, {1, 2});
  EXPECT_THAT(seen.size(), 4u);
}

TEST_P(Sessions, EndACallWhereTheObserverFails) {
  session->setObserver([&](int64_t, const hone_tensor &) { return io::invalid("enough seen"); });
  EXPECT_EQ(messageOf(forward(*session, 1, {1})), "enough seen");
  EXPECT_EQ(session->state().length(), 0);
  session->setObserver({});
  EXPECT_THAT(next(*session, {1}), ElementsAre(1));
}

TEST_P(Sessions, TakeContextOnce) {
  std::string decoder = temporary.file("context.hone");
  writeToy(decoder, GetParam(), toyManifestWithContext());
  module = *Module::load(decoder);
  session = open();
  Array encoded = makeArray<float>(HONE_F32, {1, 2}, {1, 2}), wrong = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3});
  NamedTensor good[] = {{"encoded", encoded.view()}}, bad[] = {{"encoded", wrong.view()}},
              other[] = {{"tokens", encoded.view()}};
  EXPECT_THAT(messageOf(forward(*session, 1, {1})),
              HasSubstr("missing context 'encoded' of 'forward': the session must be given it before its first call"));
  EXPECT_THAT(messageOf(session->setContext(bad)),
              HasSubstr("expected input 'encoded' to have shape [batch, 2], but got [1, 3]"));
  EXPECT_EQ(messageOf(session->setContext(other)), "unknown context 'tokens'; the context of 'forward' is: encoded");
  ASSERT_EQ(messageOf(session->setContext(good)), "OK");
  EXPECT_THAT(messageOf(forward(*session, 2, {1, 2})), HasSubstr("batch is 2 in input 'tokens'"));
  EXPECT_THAT(next(*session, {1, 2}), ElementsAre(1, 3));
  EXPECT_EQ(messageOf(session->setContext(good)), "cannot set context after 2 positions; reset the session first");
  session->state().reset();
  EXPECT_THAT(next(*session, {4}), ElementsAre(4)) << "context stays";
}

TEST_P(Sessions, RunInParallelThreads) {
  std::vector<std::vector<int64_t>> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      auto own = open();
      own->setThreads(1);
      for (int64_t step = 0; step < 100; ++step)
        results[i].push_back(next(*own, {static_cast<int64_t>(i)})[0]);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t step = 0; step < 100; ++step)
      ASSERT_EQ(results[i][step], static_cast<int64_t>(i * (step + 1) % 8));
}

TEST_P(Sessions, KeepTheModuleAlive) {
  module.reset();
  EXPECT_THAT(next(*session, {3}), ElementsAre(3));
}

TEST_P(Sessions, NeedAnEntryThatExists) {
  EXPECT_THAT(messageOf(Session::create(module, "backward")), HasSubstr("no entry 'backward'"));
}

INSTANTIATE_TEST_SUITE_P(Targets, Sessions, testing::Values("cpu", "cuda"),
                         [](const auto &target) { return std::string(target.param); });

} // namespace
} // namespace hone::test
