// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences of a batch through the C interface.

#include "hone/runtime/hone.h"
#include "support.h"

#include <cmath>
#include <thread>

namespace hone::test {
namespace {

using testing::HasSubstr;

TEST(CApiSequences, KeepTheirOwnAndJoin) {
  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
  writeArtefact(folder, HONE_TEST_PROGRAM, toyManifest());
  hone_module *module = nullptr;
  hone_session *session = nullptr;
  ASSERT_EQ(hone_module_open(folder.c_str(), &module), HONE_OK) << hone_last_error();
  ASSERT_EQ(hone_session_open(module, nullptr, &session), HONE_OK) << hone_last_error();
  auto feed = [](hone_session *target, int64_t batch, std::vector<int64_t> tokens) {
    Array array = makeArray<int64_t>(HONE_I64, {batch, static_cast<int64_t>(tokens.size()) / batch}, tokens);
    hone_named_tensor input = {"tokens", array.view()};
    hone_outputs *outputs = nullptr;
    hone_status status = hone_session_call(target, "forward", &input, 1, &outputs);
    hone_outputs_free(outputs);
    return status;
  };
  ASSERT_EQ(feed(session, 2, {1, 2, 3, 4, 5, 6}), HONE_OK);
  const int64_t numbers[] = {0, 2, 1}, lengths[] = {1, 1, 1};
  const size_t counts[] = {2, 1}, tooMany[] = {4, 1};
  EXPECT_EQ(hone_session_keep_each(session, numbers, counts, 1), HONE_INVALID);
  EXPECT_EQ(hone_session_keep_each(session, nullptr, tooMany, 2), HONE_INVALID);
  ASSERT_EQ(hone_session_keep_each(session, numbers, counts, 2), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_session_length_of(session, 0), 2);
  EXPECT_EQ(hone_session_length_of(session, 1), 1);
  EXPECT_EQ(feed(session, 2, {1, 1}), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("cannot call 'forward' with sequences of different lengths"));
  EXPECT_EQ(hone_session_truncate_each(session, lengths, 3), HONE_INVALID);
  ASSERT_EQ(hone_session_truncate_each(session, lengths, 2), HONE_OK) << hone_last_error();
  EXPECT_EQ(feed(session, 2, {1, 1}), HONE_OK) << hone_last_error();
  hone_session *other = nullptr, *joined = nullptr;
  ASSERT_EQ(hone_session_open(module, nullptr, &other), HONE_OK);
  const hone_session *both[] = {session, other};
  EXPECT_EQ(hone_session_join(both, 2, &joined), HONE_INVALID);
  EXPECT_THAT(hone_last_error(), HasSubstr("cannot join a session that holds no positions"));
  ASSERT_EQ(feed(other, 1, {1, 2}), HONE_OK);
  ASSERT_EQ(hone_session_join(both, 2, &joined), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_session_length_of(joined, 2), 2);
  EXPECT_EQ(feed(joined, 3, {1, 2, 3}), HONE_OK) << hone_last_error();
  ASSERT_EQ(feed(other, 1, {3}), HONE_OK);
  hone_session_close(joined);
  EXPECT_EQ(hone_session_join(both, 2, &joined), HONE_INVALID);
  hone_session_close(other);
  hone_session_close(session);
  hone_module_close(module);
}

} // namespace
} // namespace hone::test
