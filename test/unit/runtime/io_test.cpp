// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays, .npy, .npz and manifests: what was written comes back, and every kind of damage is named.

#include "hone/io/addresses.h"
#include "support.h"

#include <algorithm>
#include <cstring>
#include <fstream>

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npyWithHeader(std::string dictionary, std::string data) {
  std::string length = {static_cast<char>(dictionary.size()), '\0'};
  return std::string("\x93NUMPY\x01\x00", 8) + length + dictionary + data;
}

TEST(Shapes, RefuseWhatOverflows) {
  EXPECT_EQ(io::elementCount(std::vector<int64_t>{1 << 30, 1 << 30, 1 << 30}), std::nullopt);
  EXPECT_EQ(io::elementCount(std::vector<int64_t>{-1, 2}), std::nullopt);
  EXPECT_EQ(io::elementCount(std::vector<int64_t>{0, 5}), 0);
  EXPECT_EQ(io::elementCount(std::vector<int64_t>{}), 1);
}

TEST(Arrays, CopyOfAStridedViewIsDense) {
  Array array = makeArray<int32_t>(HONE_I32, {2, 3}, {1, 2, 3, 4, 5, 6});
  hone_tensor transposed = array.view();
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  absl::StatusOr<Array> copy = Array::copyOf(transposed);
  ASSERT_TRUE(copy.ok());
  EXPECT_THAT(elementsOf<int32_t>(*copy), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(copy->shape(), ElementsAre(3, 2));
}

TEST(Arrays, CopyOfABroadcastViewRepeats) {
  Array array = makeArray<int32_t>(HONE_I32, {2, 1}, {1, 2});
  hone_tensor wide = array.view();
  wide.sizes[1] = 3;
  wide.strides[1] = 0;
  absl::StatusOr<Array> copy = Array::copyOf(wide);
  ASSERT_TRUE(copy.ok());
  EXPECT_THAT(elementsOf<int32_t>(*copy), ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(Arrays, ZerosAreAlignedAndZero) {
  for (int64_t count : {0, 1, 100, 1 << 20}) {
    absl::StatusOr<Array> array = Array::zeros(HONE_F32, {count});
    ASSERT_TRUE(array.ok()) << messageOf(array);
    EXPECT_EQ(array->count(), count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array->data()) % 64, 0u);
    EXPECT_TRUE(std::ranges::all_of(array->as<float>(), [](float value) { return value == 0; }));
    Array moved = *std::move(array);
    EXPECT_EQ(moved.count(), count);
  }
}

TEST(Npy, RoundTripsEveryType) {
  TemporaryFolder folder;
  for (int32_t number = 1; io::isDtype(number); ++number) {
    auto dtype = static_cast<hone_dtype>(number);
    std::vector<char> bytes(static_cast<size_t>(6 * io::dtypeBytes(dtype)));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(i * 37);
    absl::StatusOr<Array> array = Array::create(dtype, {2, 3});
    std::memcpy(array->data(), bytes.data(), bytes.size());
    ASSERT_EQ(messageOf(io::writeNpy(folder.file("a.npy"), *array)), "OK");
    absl::StatusOr<Array> back = io::readNpy(folder.file("a.npy"));
    ASSERT_TRUE(back.ok()) << messageOf(back);
    ASSERT_EQ(messageOf(back->reinterpret(dtype)), "OK");
    EXPECT_THAT(back->shape(), ElementsAre(2, 3));
    EXPECT_EQ(std::memcmp(back->data(), bytes.data(), bytes.size()), 0) << io::dtypeName(dtype);
  }
}

TEST(Npy, RoundTripsScalarsAndEmptyArrays) {
  TemporaryFolder folder;
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {0}, {5}, {2, 0, 3}}) {
    absl::StatusOr<Array> array = Array::create(HONE_F32, shape);
    std::memset(array->data(), 0, static_cast<size_t>(array->bytes()));
    ASSERT_EQ(messageOf(io::writeNpy(folder.file("a.npy"), *array)), "OK");
    absl::StatusOr<Array> back = io::readNpy(folder.file("a.npy"));
    ASSERT_TRUE(back.ok()) << messageOf(back);
    EXPECT_THAT(back->shape(), testing::ElementsAreArray(shape));
  }
}

TEST(Npy, ReadsBytesOfTypesThatNumpyDoesNotKnow) {
  for (auto [word, dtype, bytes] :
       {std::tuple("<V2", HONE_U16, "ab"), std::tuple("|V2", HONE_U16, "ab"), std::tuple("<V1", HONE_U8, "a"),
        std::tuple("|V1", HONE_U8, "a"), std::tuple("<f1", HONE_U8, "a")}) {
    std::string file =
        npyWithHeader(io::cat("{'descr': '", word, "', 'fortran_order': False, 'shape': (1,), }"), bytes);
    absl::StatusOr<Array> array = io::parseNpy(file, "x");
    ASSERT_TRUE(array.ok()) << messageOf(array);
    EXPECT_EQ(array->dtype(), dtype) << word;
  }
}

TEST(Npy, NamesWhatIsWrong) {
  struct Case {
    std::string bytes, complaint;
  } cases[] = {
      {"", "not a .npy file"},
      {"\x93NUMPY", "not a .npy file"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "1234"), "Fortran order"},
      {npyWithHeader("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234"), "element type '>f4'"},
      {npyWithHeader("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "1234"), "element type '|O'"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"), "expected 8 bytes"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234"), "header"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': False, }", "1234"), "header"},
      {npyWithHeader("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "header"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,99999999999), }", ""), "fewer"},
      {npyWithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "1234"), "rank 9"},
  };
  for (const Case &test : cases)
    EXPECT_THAT(messageOf(io::parseNpy(test.bytes, "in.npy")),
                testing::AllOf(HasSubstr("in.npy: "), HasSubstr(test.complaint)));
}

TEST(Npz, RoundTrips) {
  TemporaryFolder folder;
  std::string path = folder.file("a.npz");
  auto writer = io::NpzWriter::create(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_EQ(messageOf(writer->add("case0/in/x", makeArray<float>(HONE_F32, {2}, {1, 2}))), "OK");
  ASSERT_EQ(messageOf(writer->add("empty", makeArray<int64_t>(HONE_I64, {0, 3}, {}))), "OK");
  EXPECT_FALSE(std::filesystem::exists(path)) << "the file appears with commit()";
  ASSERT_EQ(messageOf(writer->commit()), "OK");
  auto reader = io::NpzReader::open(path);
  ASSERT_TRUE(reader.ok()) << messageOf(reader);
  EXPECT_THAT(reader->names(), ElementsAre("case0/in/x", "empty"));
  EXPECT_THAT(elementsOf<float>(*reader->read("case0/in/x")), ElementsAre(1, 2));
  EXPECT_EQ(reader->read("empty")->count(), 0);
  EXPECT_THAT(messageOf(reader->read("nothing")), HasSubstr("no array is named 'nothing'"));
}

/// Inputs/deflated.npz: numpy.savez_compressed(ramp=numpy.arange(1000, dtype='i4'), half=numpy.float16(1.5)).
TEST(Npz, ReadsWhatNumpyCompressed) {
  auto reader = io::NpzReader::open(HONE_TEST_INPUTS "/deflated.npz");
  ASSERT_TRUE(reader.ok()) << messageOf(reader);
  absl::StatusOr<Array> ramp = reader->read("ramp");
  ASSERT_TRUE(ramp.ok()) << messageOf(ramp);
  for (int32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(ramp->as<int32_t>()[static_cast<size_t>(i)], i);
  EXPECT_THAT(elementsOf<uint16_t>(*reader->read("half")), ElementsAre(0x3e00));
}

/// Changes the number of four bytes that the `which`-th record with this signature has at `offset`.
void patch(std::string &archive, std::string_view signature, size_t which, size_t offset, uint32_t number) {
  size_t place = archive.find(signature);
  while (which-- > 0)
    place = archive.find(signature, place + 1);
  std::memcpy(archive.data() + place + offset, &number, sizeof number);
}

TEST(Npz, MembersShareNoBytes) {
  TemporaryFolder folder;
  std::string archive = *io::readFile(HONE_TEST_INPUTS "/deflated.npz"), path = folder.file("shared.npz");
  patch(archive, "PK\1\2", 1, 42, 0); // the second member begins where the first does
  ASSERT_EQ(messageOf(io::writeFile(path, archive)), "OK");
  EXPECT_EQ(messageOf(io::NpzReader::open(path)), path + ": two arrays share bytes of the file");
}

TEST(Npz, MembersAreAsLongAsTheirHeadersSay) {
  TemporaryFolder folder;
  std::string whole = *io::readFile(HONE_TEST_INPUTS "/deflated.npz"), path = folder.file("long.npz");
  for (uint32_t bytes : {4127u, 4129u, 1000000u, 127u, 5u, 0u}) { // not the 128 + 4000 that they are
    std::string archive = whole;
    patch(archive, "PK\1\2", 0, 24, bytes);
    ASSERT_EQ(messageOf(io::writeFile(path, archive)), "OK");
    auto reader = io::NpzReader::open(path);
    ASSERT_TRUE(reader.ok()) << messageOf(reader);
    EXPECT_THAT(messageOf(reader->read("ramp")),
                testing::AnyOf(HasSubstr("expected 4000 bytes of data for shape [1000], but got"),
                               HasSubstr("cut short in its header"), HasSubstr("damaged deflate data")))
        << bytes;
  }
}

TEST(Npz, EveryCutIsAnError) {
  TemporaryFolder folder;
  std::string whole = *io::readFile(HONE_TEST_INPUTS "/deflated.npz");
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    ASSERT_EQ(messageOf(io::writeFile(folder.file("cut.npz"), whole.substr(0, bytes))), "OK");
    EXPECT_FALSE(io::NpzReader::open(folder.file("cut.npz")).ok()) << bytes;
  }
}

TEST(Npz, EveryFlippedByteIsHarmless) {
  TemporaryFolder folder;
  std::string whole = *io::readFile(HONE_TEST_INPUTS "/deflated.npz");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(~flipped[i]);
    ASSERT_EQ(messageOf(io::writeFile(folder.file("flipped.npz"), flipped)), "OK");
    auto reader = io::NpzReader::open(folder.file("flipped.npz"));
    if (!reader.ok())
      continue;
    for (const std::string &name : reader->names())
      if (absl::StatusOr<Array> array = reader->read(name); array.ok() && name == "ramp") {
        EXPECT_EQ(array->as<int32_t>()[999], 999) << i;
      }
  }
}

TEST(Manifests, AreFilesOfAFewMegabytes) {
  TemporaryFolder folder;
  std::string path = folder.file("manifest.json");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, uint64_t{1} << 40); // all of it a hole
  EXPECT_EQ(messageOf(io::readManifest(path)),
            path + ": expected a manifest of at most 4194304 bytes, but got 1099511627776");
}

TEST(Manifests, AreNotNestedWithoutEnd) {
  std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(messageOf(io::parseManifest(deep, "m.json")), "m.json: expected JSON to be nested at most 512 deep");
}

TEST(FileWriters, LeaveNothingWithoutCommit) {
  TemporaryFolder folder;
  {
    ASSERT_EQ(messageOf(io::FileWriter::create(folder.file("a"))->write("half")), "OK");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_THAT(messageOf(io::writeFile(folder.file("no/such/folder"), "text")), HasSubstr("cannot write"));
}

TEST(FileWriters, WriteDevicesAsTheyAre) {
  std::string message = messageOf(io::writeFile("/dev/full", "text"));
  EXPECT_THAT(message, HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  TemporaryFolder folder;
  EXPECT_THAT(messageOf(io::writeFile(folder.path.string(), "text")), HasSubstr("it is a folder"));
}

TEST(ScratchFiles, AreZerosWithoutAName) {
  TemporaryFolder folder;
  constexpr uint64_t size = 10000;
  auto file = io::ScratchFile::create(folder.file("result"), size);
  ASSERT_TRUE(file.ok()) << messageOf(file);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  ASSERT_EQ(file->size(), size);
  EXPECT_THAT(std::span(file->data(), size), testing::Each(0));
  io::ScratchFile moved = *std::move(file);
  moved.data()[size - 1] = 7;
  EXPECT_EQ(moved.data()[size - 1], 7);
  moved.release(5000, size);
  EXPECT_EQ(moved.data()[size - 1], 7);
  EXPECT_EQ(moved.data()[0], 0);
}

TEST(ScratchFiles, NeedAFolderAndRoom) {
  TemporaryFolder folder;
  EXPECT_THAT(messageOf(io::ScratchFile::create(folder.file("absent/result"), 1)),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(messageOf(io::ScratchFile::create(folder.file("result"), uint64_t{1} << 60)),
              HasSubstr("cannot make room for 1152921504606846976 bytes beside"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(TemporaryPaths, AreRemovedUnlessReleased) {
  TemporaryFolder folder;
  auto make = [&](const char *name) {
    return io::TemporaryPath::made(folder.file(name),
                                   [&] { return std::filesystem::create_directories(folder.file(name) + "/inside"); });
  };
  {
    io::TemporaryPath removed = make("removed"), kept = make("kept");
    io::TemporaryPath moved = std::move(removed);
    kept.release();
    EXPECT_EQ(kept.path(), "");
    EXPECT_EQ(moved.path(), folder.file("removed"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("removed")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("kept")));
  EXPECT_EQ(make("kept").path(), "") << "what was there before is not ours to remove";
  EXPECT_TRUE(std::filesystem::exists(folder.file("kept")));
}

TEST(Manifests, RoundTrip) {
  io::Manifest manifest = toyManifest();
  manifest.fileBytes = {{"program.so", 10}, {"weights.safetensors", 20}};
  manifest.kernels = {"hone.matmul.f32"};
  manifest.gatheredWeights = {"table"};
  manifest.tokenizer = "tokenizer.json";
  std::string text = io::manifestText(manifest);
  auto back = io::parseManifest(text, "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(io::manifestText(*back), text);
  EXPECT_EQ(back->gatheredWeights, manifest.gatheredWeights);
  EXPECT_EQ(back->states[0].slots[0].appendAxis, 2);
  EXPECT_EQ(back->entry("count")->state, "counter");
  EXPECT_EQ(back->slotsOf(*back->entry("count"))[0].appendAxis, std::nullopt);
  EXPECT_EQ(back->states[0].slots[0].layout, io::StateLayout::Rows);
  EXPECT_EQ(back->entry("nothing"), nullptr);
  back = io::parseManifest(io::manifestText(toyManifestWithContext()), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_FALSE(back->entry("forward")->inputs[0].isContext);
  EXPECT_TRUE(back->entry("forward")->inputs[1].isContext);
  EXPECT_EQ(back->entry("forward")->inputs[0].rows, 0);
  manifest.entries[1].inputs[0].dtype = HONE_I32;
  manifest.entries[1].inputs[0].rows = 7;
  manifest.entries[1].inputs[0].rowOffset = 2;
  manifest.entries[1].limits = {{{"sequence"}, true, 9, "table"}};
  manifest.fileChecksums = {{"program.so", 0xdeadbeef}};
  manifest.states[0].slots[0].layout = io::StateLayout::ValueBlocks;
  back = io::parseManifest(io::manifestText(manifest), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(back->entry("forward")->inputs[0].rows, 7);
  EXPECT_EQ(back->entry("forward")->inputs[0].rowOffset, 2);
  EXPECT_EQ(back->fileChecksums, manifest.fileChecksums);
  ASSERT_EQ(back->entry("forward")->limits.size(), 1u);
  EXPECT_EQ(back->entry("main")->limits.size(), 0u);
  EXPECT_EQ(io::manifestText(*back), io::manifestText(manifest));
  EXPECT_EQ(back->states[0].slots[0].layout, io::StateLayout::ValueBlocks);
  EXPECT_EQ(back->states[0].slots[0].bits, 0);
  manifest.states[0].slots[0].bits = 8;
  back = io::parseManifest(io::manifestText(manifest), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(back->states[0].slots[0].bits, 8);
  EXPECT_EQ(back->states[0].slots[0].beginning, "");
  io::TensorInfo gain;
  gain.name = "gain";
  gain.shape = {io::Dim::fixed(2)};
  gain.beginning = "model.gain";
  manifest.states[0].slots.push_back(gain);
  back = io::parseManifest(io::manifestText(manifest), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(back->states[0].slots[1].beginning, "model.gain");
}

TEST(Manifests, KeepTheDevice) {
  io::Manifest manifest = toyManifest();
  EXPECT_EQ(io::parseManifest(io::manifestText(manifest), "manifest.json")->device, std::nullopt);
  manifest.device = {"sm_90", "device.fatbin", {"main_kernel_0", "main_kernel_1"}, 1};
  auto back = io::parseManifest(io::manifestText(manifest), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(back->device, manifest.device);
}

TEST(Manifests, KeepHowTextsBeginAndEnd) {
  io::Manifest manifest = toyManifest();
  io::GenerationInfo &info = manifest.generation;
  info = {{7, 3}, 1, {{5}, {2, 4}, {6}}, {{0, 2}, {3}, 7}};
  auto back = io::parseManifest(io::manifestText(manifest), "manifest.json");
  ASSERT_TRUE(back.ok()) << messageOf(back);
  EXPECT_EQ(back->generation.endTokens, info.endTokens);
  EXPECT_EQ(back->generation.beginToken, info.beginToken);
  EXPECT_EQ(back->generation.startTokens, info.startTokens);
  EXPECT_EQ(back->generation.rules.never, info.rules.never);
  EXPECT_EQ(back->generation.rules.notFirst, info.rules.notFirst);
  EXPECT_EQ(back->generation.rules.last, info.rules.last);
  EXPECT_EQ(back->mostEmbeddedTokens, std::nullopt);
  manifest.mostEmbeddedTokens = 256;
  EXPECT_EQ(io::parseManifest(io::manifestText(manifest), "manifest.json")->mostEmbeddedTokens, 256);
  manifest.mostEmbeddedTokens = 0;
  EXPECT_EQ(messageOf(io::parseManifest(io::manifestText(manifest), "m.json")),
            "m.json: expected embedding.most_tokens to be a number of tokens");
  manifest.mostEmbeddedTokens = std::nullopt;
  manifest.features = io::FeatureInfo{"image_features", 5};
  EXPECT_FALSE(io::parseManifest(io::manifestText(manifest), "manifest.json").ok()); // no entry has such context
  manifest.features.reset();
  info.startTokens = {{5}, {}};
  EXPECT_EQ(messageOf(io::parseManifest(io::manifestText(manifest), "m.json")),
            "m.json: expected generation.start to be lists of at least one token id");
}

TEST(Manifests, KeepTheNumberOfRanks) {
  io::Manifest manifest = toyManifest();
  EXPECT_EQ(io::parseManifest(io::manifestText(manifest), "manifest.json")->ranks, 1);
  manifest.ranks = 2;
  EXPECT_EQ(io::parseManifest(io::manifestText(manifest), "manifest.json")->ranks, 2);
  EXPECT_EQ(io::weightsFile(1, 0), "weights.safetensors");
  EXPECT_EQ(io::weightsFile(2, 1), "weights.rank1.safetensors");
}

TEST(Manifests, NameWhatIsWrong) {
  io::Manifest manifest = toyManifest();
  manifest.device = {"sm_90", "device.fatbin", {"main_kernel_0"}, 1};
  manifest.ranks = 2;
  std::string good = io::manifestText(manifest);
  struct Case {
    std::string from, to, complaint;
  } cases[] = {
      {"\"hone-artefact\"", "\"onnx\"", "expected schema"},
      {"\"version\": 3", "\"version\": 2", "unsupported artefact version 2; supported: 3"},
      {"\"version\": 3", "\"version\": 1.5", "unsupported artefact version"},
      {"\"target\": \"cpu\"", "\"target\": 3", "manifest.target to be a string"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f31\"", "main.x.dtype to be an element type"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f32\", \"rows\": 7",
       "main.x.rows to be a number of rows, of an input of i32"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"i64\", \"rows\": 0", "main.x.rows to be a number of rows"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"i64\", \"rows\": 7, \"row_offset\": 9223372036854775807",
       "main.x.row_offset to be a number"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"i64\", \"rows\": -9223372036854775808",
       "main.x.rows to be a number of rows"},
      {"\"device.fatbin\"", "\"../device.fatbin\"", "device.file to be the name of a file in the folder"},
      {"\"name\": \"main\"", "\"name\": \"main\", \"limits\": 3", "main.limits to be a list"},
      {"\"name\": \"main\"", "\"name\": \"main\", \"limits\": [{\"sizes\": [\"batch\"], \"table\": \"t\"}]",
       "main.limits to be a list of {sizes, held, most, table}"},
      {"\"name\": \"main\"", "\"name\": \"main\", \"limits\": [{\"sizes\": [\"none\"], \"table\": \"t\", \"most\": 2}]",
       "main.limits to be of sizes of its inputs"},
      {"\"entries\": [", "\"entries\": 1, \"e\": [", "manifest.entries to be a list"},
      {"\"state\": \"history\"", "\"state\": \"nothing\"",
       "forward.state to be the name of a state, but got 'nothing'"},
      {"\"states\": [", "\"states\": [{\"name\": \"counter\", \"slots\": []}, ",
       "to be that of no other, but got 'counter'"},
      {"\"append_axis\": 2", "\"append_axis\": 4", "append_axis to be an axis"},
      {"\"append_axis\": 2", "\"append_axis\": 2, \"beginning\": \"w\"", "beginning to be a tensor"},
      {"\"append_axis\": 2", "\"beginning\": \"w\"", "beginning to be a tensor, of a slot of fixed sizes"},
      {"\"append_axis\": 2", "\"append_axis\": 2, \"layout\": \"tiles\"", "layout to be 'key_blocks' or"},
      {"\"append_axis\": 2", "\"append_axis\": 1, \"layout\": \"key_blocks\"", "layout to be 'key_blocks' or"},
      {"\"append_axis\": 2", "\"append_axis\": 2, \"layout\": \"key_blocks\", \"bits\": 5", "bits to be 4 or 8"},
      {"\"append_axis\": 2", "\"append_axis\": 2, \"layout\": \"key_blocks\", \"bits\": \"8\"", "bits to be 4 or 8"},
      {"\"append_axis\": 2", "\"append_axis\": 2, \"bits\": 8", "bits to be those of a slot in blocks"},
      {"\"files\": {}", "\"files\": {\"program.so\": {\"bytes\": -1}}", "files.program.so.bytes"},
      {"\"files\": {}", "\"files\": {\"program.so\": {\"bytes\": 1, \"crc32\": 4294967296}}", "files.program.so.crc32"},
      {"\"chip\"", "\"ship\"", "device.chip to be a string"},
      {"\"kernels\": [\n   \"main", "\"kernels\": [\n   1, \"main", "device.kernels to be a list of strings"},
      {"\"services\": 1", "\"services\": []", "device.services to be a version"},
      {"\"ranks\": 2", "\"ranks\": 0", "ranks to be a number of processes, 1 to 4096"},
      {"\"ranks\": 2", "\"ranks\": 4097", "ranks to be a number of processes, 1 to 4096"},
      {"{", "", "not valid JSON"},
      {"\"hone\":", "\"version\":", "occurs twice"},
  };
  for (const Case &test : cases) {
    std::string text = good;
    size_t place = text.find(test.from, text.find("\"entries\"")); // of an entry, where one has it
    if (place == std::string::npos)
      place = text.find(test.from);
    ASSERT_NE(place, std::string::npos) << test.from;
    text.replace(place, test.from.size(), test.to);
    EXPECT_THAT(messageOf(io::parseManifest(text, "manifest.json")), HasSubstr(test.complaint));
  }
}

template <typename Element>
std::string addressMessage(hone_address_rule rule, int64_t bound, std::vector<Element> elements) {
  std::vector<uint8_t> bytes(elements.size() * sizeof(Element) + 1); // one byte off, as in files
  std::ranges::copy(std::as_bytes(std::span(elements)), reinterpret_cast<std::byte *>(bytes.data() + 1));
  return messageOf(io::checkAddresses(rule, bound, std::span(bytes).subspan(1), "w"));
}

TEST(Addresses, StartsDoNotFallAndEndAtTheBound) {
  auto message = [](std::vector<int32_t> elements) { return addressMessage(HONE_ADDRESS_STARTS, 7, elements); };
  EXPECT_EQ(message({0, 0, 3, 3, 7}), "OK");
  EXPECT_EQ(message({1, 7}), "expected element 0 of 'w' to be 0, but got 1");
  EXPECT_EQ(message({0, 3, 2, 7}), "expected element 2 of 'w' to be from 3 to 7, but got 2");
  EXPECT_EQ(message({0, -1, 7}), "expected element 1 of 'w' to be from 0 to 7, but got -1");
  EXPECT_EQ(message({0, INT32_MAX, 7}), "expected element 1 of 'w' to be from 0 to 7, but got 2147483647");
  EXPECT_EQ(message({0, 6}), "expected the last element of 'w' to be 7, but got 6");
  EXPECT_EQ(message({}), "expected 'w' to have elements");
}

TEST(Addresses, AreTheElementsThatTheCompilerKnew) {
  std::vector<uint16_t> elements = {1, 2, 3};
  int64_t sum = io::crcOf({reinterpret_cast<const char *>(elements.data()), 6});
  EXPECT_EQ(addressMessage(HONE_ADDRESS_KNOWN, sum, elements), "OK");
  elements[1] = 4;
  EXPECT_THAT(addressMessage(HONE_ADDRESS_KNOWN, sum, elements), HasSubstr("expected the CRC-32 of 'w' to be "));
}

TEST(Addresses, AreBelowTheBound) {
  auto message = [](int64_t bound, std::vector<uint16_t> elements) {
    return addressMessage(HONE_ADDRESS_BELOW, bound, elements);
  };
  std::vector<uint16_t> many(1000, 6);
  EXPECT_EQ(message(7, many), "OK");
  many[777] = 7;
  EXPECT_EQ(message(7, many), "expected element 777 of 'w' to be less than 7, but got 7");
  many[5] = 65535;
  EXPECT_EQ(message(7, many), "expected element 5 of 'w' to be less than 7, but got 65535");
  EXPECT_EQ(message(65536, many), "OK");
  EXPECT_EQ(message(0, {}), "OK");
}

} // namespace
} // namespace hone::test
