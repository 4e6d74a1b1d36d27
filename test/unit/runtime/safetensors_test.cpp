// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The safetensors reader refuses every header that does not describe its file; the writer aligns and streams.

#include "support.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

class Safetensors : public testing::Test {
protected:
  std::string openText(const std::string &header, const std::string &data) {
    uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char *>(&length), sizeof length);
    EXPECT_EQ(messageOf(io::writeFile(path, bytes + header + data)), "OK");
    return messageOf(io::SafetensorsReader::open(path));
  }

  TemporaryFolder folder;
  std::string path = folder.file("a.safetensors");
};

TEST_F(Safetensors, RoundTripsInPieces) {
  auto writer = io::SafetensorsWriter::create(
      path, {{"a", HONE_U8, {3}}, {"empty", HONE_F32, {0}}, {"b", HONE_F32, {2}}, {"c", HONE_BOOL, {}}},
      {{"format", "hone"}});
  ASSERT_TRUE(writer.ok()) << messageOf(writer);
  std::string bytes = "abc12345678\x01"; // pieces end where they like
  for (char byte : bytes)
    ASSERT_EQ(messageOf(writer->append({&byte, 1})), "OK");
  ASSERT_EQ(messageOf(writer->commit()), "OK");
  auto reader = io::SafetensorsReader::open(path);
  ASSERT_TRUE(reader.ok()) << messageOf(reader);
  EXPECT_EQ(reader->tensors().size(), 4u) << "padding is not listed";
  EXPECT_EQ(reader->metadata().at("format"), "hone");
  for (const io::StoredTensor &tensor : reader->tensors())
    EXPECT_EQ((reader->dataOffset() + tensor.offset) % 64, 0u) << tensor.name;
  const io::StoredTensor *b = reader->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(reader->bytesOf(*b)), 8), "12345678");
  EXPECT_EQ(writer->tensors()[2].offset, b->offset);
  EXPECT_EQ(reader->find("d"), nullptr);
}

TEST_F(Safetensors, AnEmptyFileOfTensorsIsAFile) {
  EXPECT_EQ(openText("{}", ""), "OK");
  auto writer = io::SafetensorsWriter::create(path, {});
  ASSERT_EQ(messageOf(writer->commit()), "OK");
  EXPECT_EQ(messageOf(io::SafetensorsReader::open(path)), "OK");
}

TEST_F(Safetensors, WriterRefusesToBeIncomplete) {
  auto writer = io::SafetensorsWriter::create(path, {{"a", HONE_U8, {3}}});
  ASSERT_EQ(messageOf(writer->append("ab")), "OK");
  EXPECT_THAT(messageOf(writer->commit()), HasSubstr("fewer bytes than announced"));
  EXPECT_THAT(messageOf(writer->append("cd")), HasSubstr("more bytes than announced"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Safetensors, WriterRefusesNamesAndTypes) {
  EXPECT_THAT(messageOf(io::SafetensorsWriter::create(path, {{"a", HONE_U8, {1}}, {"a", HONE_U8, {1}}})),
              HasSubstr("the name is taken"));
  EXPECT_THAT(messageOf(io::SafetensorsWriter::create(path, {{"a", HONE_C128, {1}}})), HasSubstr("cannot store"));
  EXPECT_THAT(messageOf(io::SafetensorsWriter::create(path, {{"a", HONE_U8, {-1}}})), HasSubstr("cannot store"));
}

TEST_F(Safetensors, ReaderNamesWhatIsWrong) {
  auto tensor = [](const std::string &name, const std::string &rest) { return "\"" + name + "\":{" + rest + "}"; };
  std::string good = R"("dtype":"U8","shape":[4],"data_offsets":[0,4])";
  struct Case {
    std::string header, data, complaint;
  } cases[] = {
      {"{", "", "not valid JSON"},
      {"[]", "", "to be a JSON object"},
      {"{" + tensor("a", good) + "," + tensor("a", good) + "}", "abcd", "occurs twice"},
      {"{" + tensor("a", good) + "}", "abc", "cut short"},
      {"{" + tensor("a", good) + "}", "abcde", "expected 4 bytes of tensor data, but got 5"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[5],"data_offsets":[0,4])") + "}", "abcd", "expected 5 bytes"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])") + "}", "abcd", "expected dtype"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[4],"data_offsets":[4,0])") + "}", "abcd", "before it begins"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[4],"data_offsets":[0])") + "}", "abcd", "two data_offsets"},
      {"{" + tensor("a", R"("dtype":"U9","shape":[4],"data_offsets":[0,4])") + "}", "abcd", "unsupported dtype U9"},
      {"{" + tensor("a", R"("dtype":8,"shape":[4],"data_offsets":[0,4])") + "}", "abcd", "expected dtype"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[9223372036854775807,3],"data_offsets":[0,4])") + "}", "abcd",
       "fewer"},
      {"{" + tensor("a", R"("dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615])") + "}", "abcd",
       "expected dtype"},
      {"{" + tensor("a", good) + "," + tensor("b", R"("dtype":"U8","shape":[2],"data_offsets":[2,4])") + "}", "abcd",
       "overlaps"},
      {"{" + tensor("a", good) + "," + tensor("b", R"("dtype":"U8","shape":[1],"data_offsets":[5,6])") + "}", "abcdef",
       "belong to no tensor"},
  };
  for (const Case &test : cases)
    EXPECT_THAT(openText(test.header, test.data), testing::AllOf(HasSubstr(path), HasSubstr(test.complaint)));
}

TEST_F(Safetensors, ReaderChecksTheHeaderLength) {
  for (std::string bytes :
       {std::string(""), std::string("1234567"), std::string(8, '\xff'), std::string("\x09\0\0\0\0\0\0\0{}", 10)}) {
    ASSERT_EQ(messageOf(io::writeFile(path, bytes)), "OK");
    EXPECT_THAT(messageOf(io::SafetensorsReader::open(path)), HasSubstr("safetensors file"));
  }
  EXPECT_THAT(messageOf(io::SafetensorsReader::open(folder.file("none"))), HasSubstr("cannot open"));
  EXPECT_THAT(messageOf(io::SafetensorsReader::open(folder.path.string())),
              HasSubstr("expected a file, but it is a folder"));
}

} // namespace
} // namespace hone::test
