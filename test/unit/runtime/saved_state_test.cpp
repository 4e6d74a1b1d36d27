// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States that were saved: what sessions that begin with one hold, and which files are refused.

#include "core/saved_state.h"
#include "support.h"

#include <cstring>

namespace hone::test {
namespace {

using rt::Module;
using rt::Session;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SavedStates : public testing::Test {
protected:
  SavedStates() : module(load("toy.hone", toyManifest())) {}

  std::shared_ptr<const Module> load(const char *name, const io::Manifest &manifest) {
    writeArtefact(temporary.file(name), HONE_TEST_PROGRAM, manifest);
    return *Module::load(temporary.file(name));
  }

  static std::vector<float> feed(Session &session, std::vector<int64_t> tokens, int64_t batch = 1) {
    Array array = makeArray<int64_t>(HONE_I64, {batch, std::ssize(tokens) / batch}, tokens);
    rt::NamedTensor inputs[] = {{"tokens", array.view()}};
    auto outputs = session.forward(inputs);
    EXPECT_TRUE(outputs.ok()) << messageOf(outputs);
    return outputs.ok() ? elementsOf<float>((*outputs)[0]) : std::vector<float>();
  }

  std::unique_ptr<Session> open() { return *Session::create(module); }

  /// Saves a session that was fed these, and returns it.
  std::unique_ptr<Session> save(const std::vector<int64_t> &tokens) {
    auto session = open();
    feed(*session, tokens);
    EXPECT_EQ(messageOf(rt::saveState(path, *session, tokens)), "OK");
    return session;
  }

  std::string restoreMessage() { return messageOf(rt::restoreState(path, *open())); }

  /// Why the saved file is refused with `count` of its bytes from `at` on overwritten.
  std::string damaged(size_t at, std::string_view bytes) {
    std::string content = *io::readFile(path);
    content.replace(at, bytes.size(), bytes);
    EXPECT_EQ(messageOf(io::writeFile(path, content)), "OK");
    return restoreMessage();
  }

  /// The same with words of its header replaced by others as long.
  std::string withHeader(std::string_view from, std::string_view to) {
    save({1, 2, 3});
    size_t at = io::readFile(path)->find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return damaged(at, to);
  }

  TemporaryFolder temporary;
  std::shared_ptr<const Module> module;
  std::string path = temporary.file("text.state");
};

TEST_F(SavedStates, GoOnAsTheSessionDid) {
  auto session = save({1, 2, 3, 4, 5}), first = open(), second = open();
  for (Session *other : {first.get(), second.get()}) {
    auto tokens = rt::restoreState(path, *other);
    ASSERT_TRUE(tokens.ok()) << messageOf(tokens);
    EXPECT_THAT(*tokens, ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(other->state().length(), 5);
  }
  EXPECT_EQ(feed(*first, {6, 7, 1}), feed(*session, {6, 7, 1}));
  ASSERT_EQ(messageOf(session->state().truncate(5)), "OK");
  EXPECT_EQ(feed(*second, {2}), feed(*session, {2})) << "the other has written to pages of its own";
  for (int64_t i = 0; i < 1000; ++i) // beyond the room of the file
    ASSERT_EQ(feed(*second, {i % 8}), feed(*session, {i % 8})) << i;
  ASSERT_EQ(messageOf(second->state().truncate(2)), "OK");
  EXPECT_EQ(feed(*second, {3}).size(), 8u);
  EXPECT_EQ(restoreMessage(), "OK") << "the file is as it was";
}

TEST_F(SavedStates, AreOfAllTokensOfOneText) {
  auto session = open();
  feed(*session, {1, 2, 3});
  EXPECT_THAT(messageOf(rt::saveState(path, *session, std::vector<int64_t>{1, 2})),
              HasSubstr("cannot save the state of a session after 2 tokens: it holds 3"));
  EXPECT_THAT(messageOf(rt::saveState(path, *open(), {})), HasSubstr("cannot save"));
  auto two = open();
  feed(*two, {1, 2, 3, 4}, 2);
  EXPECT_THAT(messageOf(rt::saveState(path, *two, std::vector<int64_t>{1, 2})), HasSubstr("of 2 texts"));
}

TEST_F(SavedStates, OfOtherModelsAreRefused) {
  save({1, 2, 3});
  io::Manifest manifest = toyManifest();
  manifest.sourceName = "other.onnx";
  module = load("other.hone", manifest);
  EXPECT_THAT(restoreMessage(),
              AllOf(HasSubstr(path + ": expected a state of the model "), HasSubstr(", but it is of the model '")));
}

TEST_F(SavedStates, ThatAreDamagedAreRefused) {
  save({1, 2, 3});
  std::string content = *io::readFile(path);
  EXPECT_THAT(damaged(content.size() - 1, "x"), "OK") << "room that nothing was written to";
  size_t tokens = content.find(std::string_view("\2\0\0\0\0\0\0\0\3", 9));
  ASSERT_NE(tokens, std::string::npos);
  EXPECT_THAT(damaged(tokens, "\7"), HasSubstr(": is damaged: expected the checksum "));
  EXPECT_EQ(messageOf(io::writeFile(path, content.substr(0, content.size() - 5))), "OK");
  EXPECT_THAT(restoreMessage(), HasSubstr(path + ": "));
  EXPECT_EQ(messageOf(io::writeFile(path, "")), "OK");
  EXPECT_THAT(restoreMessage(), HasSubstr(path + ": "));
  EXPECT_THAT(withHeader("hone state", "hone stale"), HasSubstr(": is not the state of a session"));
  EXPECT_THAT(withHeader("\"version\":\"1\"", "\"version\":\"2\""),
              HasSubstr("expected version 1 of a saved state, but it is '2'"));
  EXPECT_THAT(withHeader("\"size.batch\":\"1\"", "\"size.batch\":\"x\""),
              HasSubstr("expected size.batch to be a size, but it is 'x'"));
  EXPECT_THAT(withHeader("\"size.batch\":\"1\"", "\"size.batch\":\"2\""),
              HasSubstr("expected state 'history' of f32 "));
  EXPECT_THAT(withHeader("state.history", "state.histore"), HasSubstr(": has no state.history"));
  EXPECT_THAT(withHeader("\"tokens\"", "\"tokenz\""), HasSubstr(": has no tokens"));
}

TEST_F(SavedStates, ThatAreRefusedLeaveTheSessionAtItsBeginning) {
  save({1, 2, 3});
  auto session = open(), fresh = open();
  feed(*session, {4, 5});
  std::string content = *io::readFile(path);
  EXPECT_EQ(messageOf(io::writeFile(path, content.substr(0, 20))), "OK");
  EXPECT_NE(messageOf(rt::restoreState(path, *session)), "OK");
  EXPECT_EQ(session->state().length(), 0);
  EXPECT_EQ(feed(*session, {1, 2}), feed(*fresh, {1, 2}));
}

} // namespace
} // namespace hone::test
