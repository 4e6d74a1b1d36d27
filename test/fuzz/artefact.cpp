//===- artefact.cpp - fuzz target: artefacts around a program that is trusted -------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An input is a manifest, a byte of 0, and a file of weights. Sizes and sums in the manifest are set right, as whoever edits an artefact
// would. What loads is called: artefact_program.c believes everything that is checked before.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "core/module.h"
#include "hone/io/file.h"

#include <cstdlib>
#include <filesystem>

using namespace hone;

namespace {

/// A folder of this process with the program in it.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-fuzz-XXXXXX").string();
    path = mkdtemp(pattern.data());
    std::filesystem::copy_file(HONE_FUZZ_PROGRAM, path + "/program.so");
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void write(const char *name, std::string_view bytes) const {
    if (!io::writeFile(path + "/" + name, bytes).ok())
      std::abort();
  }

  std::string path;
};

void load(const Folder &folder) {
  absl::StatusOr<std::shared_ptr<const rt::Module>> module = rt::Module::load(folder.path);
  if (!module.ok())
    return;
  absl::StatusOr<io::Array> x = io::Array::create(HONE_F32, {3, 8});
  if (!x.ok())
    std::abort();
  std::fill_n(x->as<float>().data(), 24, 1.0f);
  rt::NamedTensor inputs[] = {{"x", x->view()}};
  if (!(*module)->call("main", inputs).ok())
    std::abort(); // the program has no other entry, and takes such an input
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  std::string_view text(reinterpret_cast<const char *>(data), size);
  size_t end = std::min(text.find('\0'), size);
  std::string_view manifest = text.substr(0, end), weights = text.substr(std::min(end + 1, size));
  folder.write("weights.safetensors", weights);
  folder.write("manifest.json", manifest);
  load(folder);
  absl::StatusOr<io::Manifest> parsed = io::parseManifest(manifest, "fuzz");
  if (!parsed.ok())
    return 0;
  std::string program = *io::readFile(folder.path + "/program.so");
  parsed->fileBytes = {{"program.so", program.size()}, {"weights.safetensors", weights.size()}};
  parsed->fileChecksums = {{"program.so", io::crcOf(program)}};
  folder.write("manifest.json", io::manifestText(*parsed));
  load(folder);
  return 0;
}
