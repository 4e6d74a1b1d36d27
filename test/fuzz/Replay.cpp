//===- Replay.cpp - runs a fuzz target over files, without a fuzzer -----------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments are files and folders; every file is handed to the target once. No file at all is an error, so that a
// lost corpus is noticed.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static std::vector<std::filesystem::path> filesUnder(const std::filesystem::path &path) {
  if (!std::filesystem::is_directory(path))
    return {path};
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  return files;
}

int main(int argc, char **argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path &path : filesUnder(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      std::cerr << path.string() << std::endl;
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
      ++count;
    }
  }
  std::cout << "replayed " << count << " files\n";
  return count == 0;
}
