// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime's tests share: temporary folders, arrays from lists, and a small artefact around program/program.c.

#ifndef HONE_TEST_UNIT_RUNTIME_SUPPORT_H
#define HONE_TEST_UNIT_RUNTIME_SUPPORT_H

#include "hone/io/file.h"
#include "hone/io/manifest.h"
#include "hone/io/npy.h"
#include "hone/io/safetensors.h"
#include "hone/io/signature.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hone::test {

using io::Array;

/// A folder that is removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }

  std::string file(const std::string &name) const { return (path / name).string(); }

  std::filesystem::path path;
};

/// "path: reason", or "OK".
template <typename Result>
std::string messageOf(const Result &result) {
  absl::Status status;
  if constexpr (std::is_same_v<Result, absl::Status>)
    status = result;
  else
    status = result.status();
  return status.ok() ? "OK" : std::string(status.message());
}

template <typename Element>
Array makeArray(hone_dtype dtype, std::vector<int64_t> shape, const std::vector<Element> &elements) {
  absl::StatusOr<Array> array = Array::create(dtype, std::move(shape));
  EXPECT_TRUE(array.ok()) << messageOf(array);
  EXPECT_EQ(array->count(), static_cast<int64_t>(elements.size()));
  std::ranges::copy(elements, array->template as<Element>().begin());
  return *std::move(array);
}

template <typename Element>
std::vector<Element> elementsOf(const Array &array) {
  std::span<const Element> elements = array.as<Element>();
  return {elements.begin(), elements.end()};
}

inline void shorten(const std::string &path, uint64_t bytes) { std::filesystem::resize_file(path, bytes); }

/// What program/program.c offers.
inline io::Manifest toyManifest() {
  using io::Dim;
  Dim batch = Dim::symbolic("batch"), sequence = Dim::symbolic("sequence");
  io::Manifest manifest;
  manifest.honeVersion = "0.1.0";
  manifest.target = "cpu";
  manifest.cpuName = "x86-64-v2";
  manifest.cpuFeatures = {"sse4.2", "popcnt"};
  manifest.sourceName = "toy.onnx";
  manifest.generation.endTokens = {7};
  io::EntryInfo main, forward, count;
  main.name = "main";
  main.inputs = {{"x", HONE_F32, {batch, Dim::fixed(3)}, {}}, {"y", HONE_F32, {batch, Dim::fixed(3)}, {}}};
  main.outputs = {{"sum", HONE_F32, {batch, Dim::fixed(3)}, {}}, {"rows", HONE_I64, {}, {}}};
  forward.name = "forward";
  forward.inputs = {{"tokens", HONE_I64, {batch, sequence}, {}}};
  forward.outputs = {{"logits", HONE_F32, {batch, Dim::symbolic("logits_to_keep"), Dim::fixed(8)}, {}}};
  forward.state = "history";
  count.name = "count";
  count.outputs = {{"calls", HONE_I64, {}, {}}};
  count.state = "counter";
  manifest.states = {{"history", {{"history", HONE_F32, {batch, Dim::fixed(1), Dim::fixed(0), Dim::fixed(2)}, 2}}},
                     {"counter", {{"counter", HONE_I64, {Dim::fixed(1)}, {}}}}};
  manifest.entries = {main, forward, count};
  return manifest;
}

/// The toy with `verify`, which does what `forward` does, over the same state.
inline io::Manifest toyManifestWithVerification() {
  io::Manifest manifest = toyManifest();
  io::EntryInfo verify = *manifest.entry("forward");
  verify.name = "verify";
  manifest.entries.push_back(verify);
  return manifest;
}

/// The toy that verifies trees, of HONE_TEST_PROGRAM_TREES.
inline io::Manifest toyManifestWithTrees() {
  io::Manifest manifest = toyManifestWithVerification();
  manifest.entries.back().inputs.push_back({"ancestors", HONE_I64, {io::Dim::symbolic("sequence")}, {}});
  return manifest;
}

/// The same with sequences that have lengths and trees of their own.
inline io::Manifest toyManifestWithTreesForEach() {
  io::Manifest manifest = toyManifestWithTrees();
  for (io::EntryInfo *entry : {&manifest.entries[1], &manifest.entries.back()})
    entry->hasOwnLengths = true;
  std::vector<io::Dim> &shape = manifest.entries.back().inputs.back().shape;
  shape.insert(shape.begin(), io::Dim::symbolic("batch"));
  return manifest;
}

/// The toy whose `forward` has the context `encoded`, f32 [batch, 2]. The program does not read it.
inline io::Manifest toyManifestWithContext() {
  io::Manifest manifest = toyManifest();
  io::TensorInfo encoded = {
      "encoded", HONE_F32, {io::Dim::symbolic("batch"), io::Dim::fixed(2)}, {}, /*isContext=*/true};
  manifest.entries[1].inputs.push_back(encoded);
  return manifest;
}

/// Makes the program of an artefact one that was compiled for its manifest and weights, and lists the files that it has.
inline void signArtefact(const std::string &folder) {
  auto manifest = io::readManifest(folder + "/manifest.json");
  ASSERT_TRUE(manifest.ok()) << messageOf(manifest);
  auto weights = io::SafetensorsReader::open(folder + "/" + io::weightsFile(manifest->ranks, 0));
  ASSERT_TRUE(weights.ok()) << messageOf(weights);
  std::string program = *io::readFile(folder + "/program.so");
  size_t mark = program.find("HONE TEST SIGNATURE BEGINS HERE");
  constexpr size_t markBytes = 32;
  if (mark != program.npos) {
    std::string text = io::signatureOf(*manifest) + io::signatureOf(weights->tensors()) + '\0';
    program.replace(mark + markBytes, text.size(), text);
    ASSERT_EQ(messageOf(io::writeFile(folder + "/program.so", program)), "OK");
  }
  for (const auto &file : std::filesystem::directory_iterator(folder))
    if (std::string name = file.path().filename(); name != "manifest.json")
      manifest->fileBytes[name] = file.file_size();
  for (const std::string &code : {std::string("program.so"), manifest->device ? manifest->device->file : ""})
    if (manifest->fileBytes.contains(code))
      manifest->fileChecksums[code] = io::crcOf(*io::readFile(folder + "/" + code));
  ASSERT_EQ(messageOf(io::writeFile(folder + "/manifest.json", io::manifestText(*manifest))), "OK");
}

/// Writes an artefact around a program; `weights` has one tensor "offset" of 3 f32: 100, 200, 300.
inline void writeArtefact(const std::string &folder, const std::string &program, const io::Manifest &manifest) {
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(program, folder + "/program.so", std::filesystem::copy_options::overwrite_existing);
  auto writer = io::SafetensorsWriter::create(folder + "/weights.safetensors", {{"offset", HONE_F32, {3}}});
  ASSERT_TRUE(writer.ok()) << messageOf(writer);
  Array offset = makeArray<float>(HONE_F32, {3}, {100, 200, 300});
  ASSERT_EQ(messageOf(writer->append({offset.data(), static_cast<size_t>(offset.bytes())})), "OK");
  ASSERT_EQ(messageOf(writer->commit()), "OK");
  ASSERT_EQ(messageOf(io::writeFile(folder + "/manifest.json", io::manifestText(manifest))), "OK");
  signArtefact(folder);
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_SUPPORT_H
