// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder that happens to have a manifest.json may be anything: a web application has one.

#include "FormerArtefact.h"

#include "hone/io/manifest.h"

#include <filesystem>

namespace hone {

static constexpr const char *kManifest = "manifest.json";

/// Whether a file lies there itself, and no folder or link.
static bool isFile(const std::filesystem::path &path) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error));
}

absl::Status checkFormerArtefact(const std::string &shown, const std::string &path, const io::InputFiles &inputs) {
  auto listed = io::listFiles(path + "/" + kManifest);
  if (!isFile(path + "/" + kManifest) || !listed.ok())
    return io::invalid("cannot write '", shown, "': it exists and is not an artefact of ours");
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!isFile(it->path()) || (name != kManifest && !listed->count(name)))
      return io::invalid("cannot write '", shown, "': it holds '", name, "', which is not of the artefact there");
  }
  if (error)
    return io::invalid("cannot read '", shown, "': ", error.message());
  return inputs.checkOutput(path);
}

} // namespace hone
