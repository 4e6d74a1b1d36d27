// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State of sessions in pages of an emulated GPU: growth copies nothing, sessions share memory, and one that gets none stays as it was.

#include "core/module.h"
#include "device_support.h"

namespace hone::test {
namespace {

using rt::Module;
using rt::NamedTensor;
using rt::Session;

// Sequences. A position of all of them has two numbers each, so that a page has four positions, or 32.
constexpr int64_t kMany = 65536, kSome = 8192;

class DevicePages : public EmulatedVariables {
protected:
  struct Model {
    Model() {
      writeToy(temporary.file("toy.hone"), "cuda");
      module = *Module::load(temporary.file("toy.hone"));
    }
    std::unique_ptr<Session> open() const {
      auto session = *Session::create(module);
      session->state().setLogitsToKeep(1);
      return session;
    }
    TemporaryFolder temporary;
    std::shared_ptr<const Module> module;
  };

  /// The likeliest token after `tokens` in the last sequence, everywhere, as text, or why there is none.
  static std::string feed(Session &session, std::vector<int64_t> tokens, int64_t batch = kMany) {
    std::vector<int64_t> all;
    for (int64_t sequence = 0; sequence < batch; ++sequence)
      all.insert(all.end(), tokens.begin(), tokens.end());
    Array array = makeArray<int64_t>(HONE_I64, {batch, static_cast<int64_t>(tokens.size())}, all);
    NamedTensor inputs[] = {{"tokens", array.view()}};
    auto outputs = session.forward(inputs);
    if (!outputs.ok())
      return messageOf(outputs);
    std::span<const float> last = (*outputs)[0].as<float>().last(8);
    return std::to_string(std::ranges::max_element(last) - last.begin());
  }

  /// A line of the driver's report.
  static std::string counted(const std::string &report, const std::string &name) {
    std::string text = *io::readFile(report);
    size_t begin = text.find('"' + name + '"');
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  /// Feeds ones one by one until that fails; returns why.
  static std::string feedUntilFailure(Session &session) {
    while (session.state().length() < 1000)
      if (std::string message = feed(session, {1}); message.size() > 1)
        return message;
    return "no failure";
  }
};

TEST_F(DevicePages, GrowWithoutCopiesAndInOneGraph) {
  TemporaryFolder temporary;
  std::string report = temporary.file("report.json");
  auto run = [&] {
    Model model;
    auto session = model.open();
    std::string last;
    for (int64_t step = 0; step < 70; ++step)
      last = feed(*session, {step % 8}, kSome);
    return last + counted(report, "graph_launches") + counted(report, "graph_instantiations") +
           counted(report, "pages") + counted(report, "on_device");
  };
  expect("HONE_EMULATED_REPORT", report, run, // the sum of 0 … 69 is 7 modulo 8
         "7\"graph_launches\": 68,\"graph_instantiations\": 1,\"pages\": {\"reservations\": 1, \"created\": 3, "
         "\"released\": 0, \"mapped\": 3, \"unmapped\": 0},\"on_device\": {\"count\": 0, \"bytes\": 0}");
}

TEST_F(DevicePages, KeepInOneLaunch) {
  TemporaryFolder temporary;
  std::string report = temporary.file("report.json");
  auto run = [&](const std::vector<int64_t> &kept) {
    return [&, kept] {
      Model model;
      auto session = model.open();
      feed(*session, {1}, 3), feed(*session, {2, 3, 4, 5, 6, 7}, 3);
      std::vector<std::vector<int64_t>> each = {{0, 1}, kept, kept};
      std::string status = messageOf(session->state().keepEach(each));
      return status + counted(report, "launches");
    };
  };
  // Beside the launches of two calls, three of which store small inputs, of which each sequence keeps what is in its place or
  // moves five positions.
  expect("HONE_EMULATED_REPORT", report, run({0, 1}), "OK\"launches\": 9,");
  expect("HONE_EMULATED_REPORT", report, run({1, 2, 3, 4, 5}), "OK\"launches\": 10,");
}

TEST_F(DevicePages, GoToTheNextSession) {
  TemporaryFolder temporary;
  std::string report = temporary.file("report.json");
  auto run = [&] {
    Model model;
    auto first = model.open(), second = model.open();
    std::string text = feed(*first, {1, 2, 3, 1, 1}); // two pages
    first->state().reset();
    text += feed(*second, {1, 2, 3, 1, 1}); // the same two
    text += feed(*first, {2});              // a third
    second.reset();
    text += feed(*first, {1, 1, 1, 1}); // and one of those that the second session had
    return text + counted(report, "pages");
  };
  expect("HONE_EMULATED_REPORT", report, run,
         "0026\"pages\": {\"reservations\": 3, \"created\": 3, \"released\": 0, \"mapped\": 6, \"unmapped\": 4}");
}

TEST_F(DevicePages, AreSharedByForksUntilTheyAreWritten) {
  TemporaryFolder temporary;
  std::string report = temporary.file("report.json");
  auto run = [&] {
    Model model;
    auto first = model.open();
    std::string text =
        feed(*first, {1, 2, 3, 1, 1}) + feed(*first, {1, 1, 1, 1, 1, 1, 1, 1}); // three pages and a position
    auto second = *first->fork(),
         third = *first->fork(); // the fourth page is copied: for what they share, and for each
    text += feed(*second, {1}) + feed(*third, {2}) + feed(*first, {3});
    if (!first->state().truncate(2).ok() ||
        !second->state().truncate(9).ok()) // copy what they had of three pages, and of one
      return std::string("cannot truncate");
    text += feed(*first, {5}) + feed(*second, {6}) + feed(*third, {7});
    return text + counted(report, "pages");
  };
  // Sums modulo 8. 4 + 1 + 1 + 1 pages, of which one is free again before four are copied.
  expect("HONE_EMULATED_REPORT", report, run,
         "00123021\"pages\": {\"reservations\": 6, \"created\": 10, \"released\": 0");
}

TEST_F(DevicePages, ThatAreMissingLeaveTheSessionAsItWas) {
  std::string memory = std::to_string(int64_t{20} << 20);
  auto message = [] {
    Model model;
    return feedUntilFailure(*model.open());
  };
  expect("HONE_EMULATED_MEMORY", memory, message,
         "cannot allocate 2097152 bytes of GPU memory for a session's state of ");
  expect("HONE_EMULATED_MEMORY", memory, message, " of 20971520 bytes are free");
  auto goOn = [] {
    Model model;
    auto first = model.open(), second = model.open();
    std::string text = feed(*first, {1, 2});
    feedUntilFailure(*second);
    int64_t length = second->state().length();
    text += feed(*first, {3}) + feed(*first, {4}); // to the end of its page
    text += feed(*first, {1}).substr(0, 15) + ",";
    if (feed(*second, {1}).size() == 1 || second->state().length() != length || first->state().length() != 4)
      return std::string("one of the sessions has grown");
    second->state().reset();
    return text + feed(*first, {5}) + feed(*second, {6});
  };
  expect("HONE_EMULATED_MEMORY", memory, goOn, "362cannot allocate,76");
}

TEST_F(DevicePages, BeyondTheGpusMemoryAreRefused) {
  auto run = [] {
    Model model;
    auto session = model.open();
    session->state().reserve(int64_t{1} << 40);
    return feed(*session, {1});
  };
  expect("HONE_EMULATED_DEVICES", "1", run,
         "cannot allocate 576460752303423488 bytes of GPU memory for a session's state of 1099511627776 positions: ");
}

} // namespace
} // namespace hone::test
