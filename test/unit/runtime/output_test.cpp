// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places of outputs: what makes way, and what others put there meanwhile.

#include "hone/io/output.h"
#include "support.h"

#include <fstream>
#include <sys/stat.h>

namespace hone::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string contentOf(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t countFiles(const TemporaryFolder &folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path), {}));
}

unsigned modeOf(const std::string &path) {
  struct stat information = {};
  return stat(path.c_str(), &information) == 0 ? information.st_mode & 07777 : 0;
}

TEST(InputFiles, AreKnownByAnyName) {
  TemporaryFolder folder;
  for (const char *name : {"model", "other"})
    ASSERT_EQ(messageOf(io::writeFile(folder.file(name), name)), "OK");
  std::filesystem::create_directory(folder.file("inside"));
  ASSERT_EQ(messageOf(io::writeFile(folder.file("inside/weights"), "weights")), "OK");
  std::filesystem::create_hard_link(folder.file("model"), folder.file("hard"));
  std::filesystem::create_symlink("model", folder.file("soft"));
  std::filesystem::create_directory(folder.file("holder"));
  std::filesystem::create_hard_link(folder.file("model"), folder.file("holder/held"));
  io::InputFiles inputs;
  inputs.add("");
  inputs.add(folder.file("absent"));
  inputs.add(folder.file("soft"));
  inputs.add(folder.file("inside"));
  inputs.add("/dev/null");
  for (const char *name : {"model", "hard", "soft", "inside/../model", "inside/weights"})
    EXPECT_THAT(messageOf(inputs.checkOutput(folder.file(name))), HasSubstr("it is the input")) << name;
  for (const char *name : {"holder", "inside"})
    EXPECT_THAT(messageOf(inputs.checkOutput(folder.file(name))), HasSubstr(" is in it")) << name;
  for (const std::string &path : {folder.file("other"), folder.file("absent"), std::string("/dev/null"), std::string()})
    EXPECT_EQ(messageOf(inputs.checkOutput(path)), "OK") << path;
}

TEST(FileWriters, FollowLinksAndKeepPermissions) {
  TemporaryFolder folder;
  ASSERT_EQ(messageOf(io::writeFile(folder.file("target"), "before")), "OK");
  ASSERT_EQ(chmod(folder.file("target").c_str(), 0640), 0);
  std::filesystem::create_symlink("target", folder.file("link"));
  std::filesystem::create_symlink("new", folder.file("dangling"));
  ASSERT_EQ(messageOf(io::writeFile(folder.file("link"), "after")), "OK");
  ASSERT_EQ(messageOf(io::writeFile(folder.file("dangling"), "new")), "OK");
  EXPECT_EQ(contentOf(folder.file("target")), "after");
  EXPECT_EQ(modeOf(folder.file("target")), 0640u);
  EXPECT_EQ(contentOf(folder.file("new")), "new");
  for (const char *link : {"link", "dangling"})
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file(link)));
  EXPECT_EQ(countFiles(folder), 4u);
}

TEST(FileWriters, HideWhatWasHidden) {
  TemporaryFolder folder;
  ASSERT_EQ(messageOf(io::writeFile(folder.file("secret"), "before")), "OK");
  ASSERT_EQ(chmod(folder.file("secret").c_str(), 0600), 0);
  auto writer = io::FileWriter::create(folder.file("secret"));
  ASSERT_TRUE(writer.ok()) << messageOf(writer);
  for (const auto &entry : std::filesystem::directory_iterator(folder.path))
    EXPECT_EQ(modeOf(entry.path()), 0600u) << entry.path();
}

TEST(FileWriters, KeepWhatAppearsMeanwhile) {
  TemporaryFolder folder;
  auto writer = io::FileWriter::create(folder.file("a"));
  ASSERT_TRUE(writer.ok()) << messageOf(writer);
  std::filesystem::create_directories(folder.file("a/inside"));
  EXPECT_THAT(messageOf(writer->commit()), HasSubstr("it is a folder"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("a/inside")));
  writer = io::FileWriter::create(folder.file("b"));
  std::filesystem::create_symlink("a", folder.file("b"));
  EXPECT_THAT(messageOf(writer->commit()), HasSubstr("it is a symbolic link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("b")));
  // A file is what the output replaces at any other time.
  writer = io::FileWriter::create(folder.file("c"));
  ASSERT_EQ(messageOf(io::writeFile(folder.file("c"), "meanwhile")), "OK");
  ASSERT_EQ(messageOf(writer->write("whole")), "OK");
  EXPECT_EQ(messageOf(writer->commit()), "OK");
  EXPECT_EQ(contentOf(folder.file("c")), "whole");
  writer = io::FileWriter();
  EXPECT_EQ(countFiles(folder), 3u);
}

TEST(FileWriters, LetTheirCheckSayWhichFilesMakeWay) {
  TemporaryFolder folder;
  std::string path = folder.file("a");
  auto check = [&](const std::string &there) {
    return contentOf(there) == "former" ? absl::OkStatus() : io::invalid("cannot write ", path, ": it is a thesis");
  };
  for (const char *meanwhile : {"", "former", "thesis"}) {
    auto writer = io::FileWriter::create(path);
    ASSERT_EQ(messageOf(writer->write("whole")), "OK");
    if (std::string_view(meanwhile) != "")
      std::ofstream(path) << meanwhile;
    bool isThesis = std::string_view(meanwhile) == "thesis";
    EXPECT_EQ(messageOf(writer->commit(check)), isThesis ? "cannot write " + path + ": it is a thesis" : "OK");
    EXPECT_EQ(contentOf(path), isThesis ? "thesis" : "whole");
    std::filesystem::remove(path);
    writer = io::FileWriter();
    EXPECT_EQ(countFiles(folder), 0u);
  }
  // What only a second look shows was swapped out by then, and is put back.
  std::ofstream(path) << "thesis";
  auto writer = io::FileWriter::create(path);
  int looks = 0;
  EXPECT_EQ(messageOf(writer->commit(
                [&](const std::string &there) { return ++looks == 1 ? absl::OkStatus() : check(there); })),
            "cannot write " + path + ": it is a thesis");
  EXPECT_EQ(contentOf(path), "thesis");
}

/// Puts a folder with a file into place over another, while `meanwhile` runs after the first look at what is there.
absl::Status putFolder(const TemporaryFolder &folder,
                       const std::function<absl::Status(const std::string &path)> &check) {
  auto made = io::makeBeside(folder.file("out"),
                             [](const std::string &name) { return std::filesystem::create_directory(name); });
  EXPECT_EQ(messageOf(io::writeFile(made.path() + "/new", "new")), "OK");
  return io::putInPlace(made, folder.file("out"), check);
}

TEST(Outputs, LookAgainAtWhatWasSwappedOut) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("out"));
  // What is looked at is not what is there when both are swapped.
  int looks = 0;
  auto check = [&](const std::string &path) {
    if (++looks == 1)
      std::ofstream(path + "/thesis") << "thesis";
    return looks == 1 ? absl::OkStatus() : io::invalid("cannot write ", path, ": it holds 'thesis'");
  };
  EXPECT_THAT(messageOf(putFolder(folder, check)), HasSubstr("it holds 'thesis'"));
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(contentOf(folder.file("out/thesis")), "thesis");
  EXPECT_EQ(countFiles(folder), 1u);
}

TEST(Outputs, TakeTurnsWithOthers) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("out"));
  // The folder that is looked at goes, and then another comes: neither is an error.
  int looks = 0;
  auto check = [&](const std::string &path) {
    std::error_code error;
    if (++looks == 1) {
      std::filesystem::remove_all(path, error);
    } else if (looks == 2) {
      std::filesystem::rename(path, folder.file("old"), error);
      std::filesystem::create_directory(path, error);
    }
    return looks < 3 ? io::invalid("cannot read ", path) : absl::OkStatus();
  };
  EXPECT_EQ(messageOf(putFolder(folder, check)), "OK");
  EXPECT_EQ(looks, 1) << "where nothing is, there is nothing to look at";
  std::filesystem::remove(folder.file("out/new"));
  EXPECT_EQ(messageOf(putFolder(folder, check)), "OK");
  EXPECT_EQ(looks, 4) << "once more for the folder that came, and once it was swapped out";
  EXPECT_EQ(contentOf(folder.file("out/new")), "new");
  EXPECT_EQ(countFiles(folder), 2u);
}

TEST(Outputs, BeginUnderNamesThatNothingHas) {
  TemporaryFolder folder;
  std::vector<std::string> names;
  auto make = [&](const std::string &name) {
    names.push_back(name);
    errno = EEXIST;
    return names.size() > 2;
  };
  EXPECT_EQ(io::makeBeside(folder.file("a"), make).path(), names.back());
  EXPECT_THAT(names, testing::SizeIs(3));
  EXPECT_NE(names[0], names[1]);
  auto fails = [](const std::string &) {
    errno = EACCES;
    return false;
  };
  EXPECT_THAT(io::makeBeside(folder.file("a"), fails).path(), IsEmpty());
  EXPECT_EQ(errno, EACCES);
}

TEST(MappedFiles, AreRegularFiles) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(messageOf(io::MappedFile::open(folder.file("pipe"))), HasSubstr("expected a file, but it is a pipe"));
  EXPECT_THAT(messageOf(io::MappedFile::open("/dev/zero")), HasSubstr("expected a file, but it is a device"));
  EXPECT_THAT(messageOf(io::writeFile(folder.file("pipe"), "text")), HasSubstr("nobody reads this pipe"));
}

} // namespace
} // namespace hone::test
