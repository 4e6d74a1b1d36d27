// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading of artefacts and calls: results, and one sentence for each way to be wrong.

#include "core/module.h"
#include "hone/cpu/cpu_features.h"
#include "support.h"

#include <thread>

namespace hone::test {
namespace {

using rt::Module;
using rt::NamedTensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Modules : public testing::Test {
protected:
  void SetUp() override { write(toyManifest()); }

  void write(const io::Manifest &manifest, const std::string &program = HONE_TEST_PROGRAM) {
    writeArtefact(folder, program, manifest);
  }

  std::string loadMessage() { return messageOf(Module::load(folder)); }

  /// Loads the toy with a manifest that its program was not compiled for.
  absl::Status edit(const std::function<void(io::Manifest &)> &change) {
    io::Manifest manifest = *io::readManifest(folder + "/manifest.json"), edited = manifest;
    change(edited);
    std::string path = folder + "/manifest.json";
    EXPECT_EQ(messageOf(io::writeFile(path, io::manifestText(edited))), "OK");
    absl::Status status = Module::load(folder).status();
    EXPECT_EQ(messageOf(io::writeFile(path, io::manifestText(manifest))), "OK");
    return status;
  }

  std::shared_ptr<const Module> load() {
    auto module = Module::load(folder);
    EXPECT_TRUE(module.ok()) << messageOf(module);
    return *module;
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
};

TEST_F(Modules, CallAnEntryByNames) {
  Array x = makeArray<float>(HONE_F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Array y = makeArray<float>(HONE_F32, {2, 3}, {10, 10, 10, 20, 20, 20});
  NamedTensor inputs[] = {{"y", y.view()}, {"x", x.view()}};
  auto outputs = load()->call("main", inputs);
  ASSERT_TRUE(outputs.ok()) << messageOf(outputs);
  EXPECT_THAT(elementsOf<float>((*outputs)[0]), ElementsAre(111, 212, 313, 124, 225, 326));
  EXPECT_THAT(elementsOf<int64_t>((*outputs)[1]), ElementsAre(2));
}

TEST_F(Modules, StridedAndMisalignedInputsAreCopied) {
  Array x = makeArray<float>(HONE_F32, {3, 2}, {1, 4, 2, 5, 3, 6});
  hone_tensor transposed = x.view();
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  std::vector<char> bytes(6 * sizeof(float) + 1, 0);
  hone_tensor misaligned = io::denseView(bytes.data() + 1, HONE_F32, std::vector<int64_t>{2, 3});
  NamedTensor inputs[] = {{"x", transposed}, {"y", misaligned}};
  auto outputs = load()->call("main", inputs);
  ASSERT_TRUE(outputs.ok()) << messageOf(outputs);
  EXPECT_THAT(elementsOf<float>((*outputs)[0]), ElementsAre(101, 202, 303, 104, 205, 306));
}

TEST_F(Modules, WrongInputsAreNamed) {
  Array good = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3}),
        two = makeArray<float>(HONE_F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Array whole = makeArray<int64_t>(HONE_I64, {1, 3}, {1, 2, 3}), flat = makeArray<float>(HONE_F32, {3}, {1, 2, 3});
  Array wide = makeArray<float>(HONE_F32, {1, 4}, {1, 2, 3, 4});
  auto module = load();
  auto message = [&](std::vector<NamedTensor> inputs, const char *entry = "main") {
    return messageOf(module->call(entry, inputs));
  };
  EXPECT_THAT(message({{"x", good.view()}}), HasSubstr("missing input 'y'; the inputs of 'main' are: x, y"));
  EXPECT_THAT(message({{"x", good.view()}, {"z", good.view()}}), HasSubstr("unknown input 'z'"));
  EXPECT_THAT(message({{"x", good.view()}, {"x", good.view()}}), HasSubstr("input 'x' is given twice"));
  EXPECT_THAT(message({{"x", whole.view()}, {"y", good.view()}}), HasSubstr("input 'x' to be f32, but got i64"));
  EXPECT_THAT(message({{"x", flat.view()}, {"y", good.view()}}), HasSubstr("shape [batch, 3], but got [3]"));
  EXPECT_THAT(message({{"x", wide.view()}, {"y", good.view()}}), HasSubstr("shape [batch, 3], but got [1, 4]"));
  EXPECT_THAT(message({{"x", good.view()}, {"y", two.view()}}), HasSubstr("batch is 1 in input 'x'"));
  EXPECT_THAT(message({}, "side"), AllOf(HasSubstr("no entry 'side'"), HasSubstr("main, forward, count")));
  EXPECT_THAT(message({}, "count"), HasSubstr("can only be called in a session"));
}

TEST_F(Modules, ViewsThatAreNoTensorsAreRefused) {
  Array good = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3});
  auto module = load();
  auto message = [&](auto spoil) {
    hone_tensor spoiled = good.view();
    spoil(spoiled);
    NamedTensor inputs[] = {{"x", spoiled}, {"y", good.view()}};
    return messageOf(module->call("main", inputs));
  };
  EXPECT_THAT(message([](hone_tensor &t) { t.dtype = 99; }), HasSubstr("99 is no element type"));
  EXPECT_THAT(message([](hone_tensor &t) { t.rank = 9; }), HasSubstr("unsupported rank 9"));
  EXPECT_THAT(message([](hone_tensor &t) { t.sizes[0] = -1; }), HasSubstr("[-1, 3] is no shape"));
  EXPECT_THAT(message([](hone_tensor &t) { t.sizes[0] = HONE_MAX_ELEMENTS; }),
              HasSubstr("unsupported shape [1099511627776, 3] of input"));
  EXPECT_THAT(message([](hone_tensor &t) { t.data = nullptr; }), HasSubstr("has no data"));
}

TEST_F(Modules, AProgramsFailureEndsTheCallAlone) {
  Array bad = makeArray<float>(HONE_F32, {1, 3}, {-1, 2, 3}), good = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3});
  auto module = load();
  NamedTensor failing[] = {{"x", bad.view()}, {"y", good.view()}}, working[] = {{"x", good.view()}, {"y", good.view()}};
  EXPECT_EQ(messageOf(module->call("main", failing)),
            "{}: expected x to begin with a number of at least 0, but got -1");
  EXPECT_EQ(messageOf(module->call("main", working)), "OK");
}

TEST_F(Modules, CallsRunInParallelThreads) {
  auto module = load();
  std::vector<std::thread> threads;
  std::vector<std::string> messages(4);
  for (size_t i = 0; i < messages.size(); ++i)
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        Array x = makeArray<float>(HONE_F32, {1, 3}, {i == 0 ? -1.0f : 1.0f, 0, 0});
        NamedTensor inputs[] = {{"x", x.view()}, {"y", x.view()}};
        messages[i] = messageOf(module->call("main", inputs));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(messages, ElementsAre(HasSubstr("a number of at least 0"), "OK", "OK", "OK"));
}

TEST_F(Modules, CutFilesAreNamed) {
  for (std::string name : {"program.so", "weights.safetensors"}) {
    write(toyManifest());
    shorten(folder + "/" + name, 100);
    EXPECT_THAT(loadMessage(), AllOf(HasSubstr(name), HasSubstr("but got 100; the artefact is cut short")));
    std::filesystem::remove(folder + "/" + name);
    EXPECT_THAT(loadMessage(), AllOf(HasSubstr("cannot open"), HasSubstr(name)));
  }
  write(toyManifest());
  shorten(folder + "/manifest.json", 100);
  EXPECT_THAT(loadMessage(), HasSubstr("manifest.json: not valid JSON"));
  EXPECT_THAT(messageOf(Module::load(temporary.file("none"))), HasSubstr("not a folder"));
}

TEST_F(Modules, DamagedCodeIsNotLoaded) {
  std::string program = *io::readFile(folder + "/program.so");
  EXPECT_EQ(loadMessage(), "OK");
  program[program.size() / 2] ^= 1;
  ASSERT_EQ(messageOf(io::writeFile(folder + "/program.so", program)), "OK");
  EXPECT_THAT(loadMessage(),
              AllOf(HasSubstr("program.so: expected the CRC-32 "), HasSubstr("the artefact is damaged")));
}

TEST_F(Modules, CodeWithoutASumIsNotLoaded) {
  EXPECT_EQ(messageOf(edit([](io::Manifest &manifest) { manifest.fileChecksums.clear(); })),
            folder + "/manifest.json: expected files.program.so.crc32 to be a sum of 32 bits");
}

TEST_F(Modules, ManifestsThatSayWhatTheProgramWasNotCompiledForAreRefused) {
  auto expect = [&](const std::function<void(io::Manifest &)> &change, const std::string &wanted,
                    const std::string &got) {
    EXPECT_THAT(messageOf(edit(change)), HasSubstr("manifest.json: expected '" + wanted +
                                                   "', for which program.so was compiled, but got '" + got + "'"));
  };
  std::string sum = R"(entry "main" output "sum": f32 ["batch", 3])", x = R"(entry "main" input "x": f32 ["batch", 3])",
              history = R"(state "history" slot "history": f32 ["batch", 1, 0, 2] grows 2)";
  using io::Manifest;
  expect([](Manifest &it) { it.entries[0].outputs[0].dtype = HONE_U8; }, sum,
         R"(entry "main" output "sum": u8 ["batch", 3])");
  expect([](Manifest &it) { it.entries[0].inputs.clear(); }, x, sum);
  expect([](Manifest &it) { it.entries[0].inputs[0].shape[1] = io::Dim::fixed(1); }, x,
         R"(entry "main" input "x": f32 ["batch", 1])");
  expect([](Manifest &it) { it.entries[0].inputs[0].shape[1] = io::Dim::symbolic("batch"); }, x,
         R"(entry "main" input "x": f32 ["batch", "batch"])");
  expect([](Manifest &it) { it.entries[0].inputs[0].shape.clear(); }, x, R"(entry "main" input "x": f32 [])");
  expect([](Manifest &it) { it.entries[0].inputs[0].name = "x\": f32 []\n"; }, x,
         R"(entry "main" input "x\22: f32 []\0a": f32 ["batch", 3])");
  expect([](Manifest &it) { it.entries[0].inputs[0].isContext = true; }, x, x + " context");
  expect([](Manifest &it) { it.states[0].slots[0].shape[1] = io::Dim::fixed(2); }, history,
         R"(state "history" slot "history": f32 ["batch", 2, 0, 2] grows 2)");
  expect([](Manifest &it) { it.states[0].slots[0].appendAxis.reset(); }, history,
         R"(state "history" slot "history": f32 ["batch", 1, 0, 2])");
  expect([](Manifest &it) { it.states[0].slots[0].layout = io::StateLayout::KeyBlocks; }, history,
         history + " layout key_blocks bits 0");
  expect([](Manifest &it) { it.entries[1].inputs[0].rows = 9; },
         R"(entry "forward" input "tokens": i64 ["batch", "sequence"])",
         R"(entry "forward" input "tokens": i64 ["batch", "sequence"] rows 9 offset 0)");
  expect([](Manifest &it) { it.entries[1].limits = {{{"batch"}, true, 4, "t"}}; }, R"(entry "count")",
         R"(entry "forward" limit "batch" and held: most 4 table "t")");
  expect([](Manifest &it) { it.entries.pop_back(); }, R"(entry "count")", "end of entries");
  expect([](Manifest &it) { it.cpuFeatures.pop_back(); }, R"(cpu "sse4.2" "popcnt")", R"(cpu "sse4.2")");
}

TEST_F(Modules, OnlyAProgramForSeveralRanksJoinsThem) {
  auto alone = [](io::Manifest &manifest) { manifest.ranks = 2; };
  EXPECT_THAT(messageOf(edit(alone)),
              HasSubstr("expected 'ranks 1', for which program.so was compiled, but got 'ranks 2'"));
}

TEST_F(Modules, WeightsThatTheProgramWasNotCompiledForAreRefused) {
  auto expect = [&](const io::StoredTensor &tensor, const std::string &got) {
    write(toyManifest());
    auto writer = io::SafetensorsWriter::create(folder + "/weights.safetensors", {tensor});
    ASSERT_TRUE(writer.ok()) << messageOf(writer);
    std::string bytes(static_cast<size_t>(*io::tensorBytes(tensor.dtype, tensor.shape)), '\0');
    ASSERT_EQ(messageOf(writer->append(bytes)), "OK");
    ASSERT_EQ(messageOf(writer->commit()), "OK");
    uint64_t size = std::filesystem::file_size(folder + "/weights.safetensors");
    EXPECT_EQ(messageOf(edit([&](io::Manifest &manifest) { manifest.fileBytes["weights.safetensors"] = size; })),
              folder + "/weights.safetensors: expected 'weight \"offset\": F32 [3] at 0', for which program.so was " +
                  "compiled, but got '" + got + "'; the artefact is damaged or mixed from two");
  };
  expect({"offset", HONE_F32, {2}}, R"(weight "offset": F32 [2] at 0)");
  expect({"offset", HONE_F64, {3}}, R"(weight "offset": F64 [3] at 0)");
  expect({"other", HONE_F32, {3}}, R"(weight "other": F32 [3] at 0)");
}

TEST_F(Modules, NamesStayInTheFolder) {
  for (const char *name : {"/etc/passwd", "../toy.hone/program.so", "..", ""}) {
    EXPECT_THAT(messageOf(edit([&](io::Manifest &manifest) { manifest.fileBytes[name] = 1; })),
                HasSubstr("to be that of a file in the folder"));
    if (*name)
      EXPECT_THAT(
          messageOf(edit([&](io::Manifest &manifest) { manifest.tokenizer = name; })),
          AllOf(HasSubstr("manifest.tokenizer to be the name of a file in the folder, but got '"), HasSubstr(name)));
  }
  EXPECT_THAT(messageOf(edit([](io::Manifest &manifest) { manifest.tokenizer = "program"; })),
              HasSubstr("expected files to list program"));
}

TEST_F(Modules, LinksAreNotFollowed) {
  for (std::string name : {"manifest.json", "program.so", "weights.safetensors"}) {
    write(toyManifest());
    std::filesystem::rename(folder + "/" + name, temporary.file(name));
    std::filesystem::create_symlink(temporary.file(name), folder + "/" + name);
    EXPECT_EQ(loadMessage(), "cannot open " + folder + "/" + name + ": it is a symbolic link");
    std::filesystem::remove(folder + "/" + name);
  }
}

TEST_F(Modules, SizesBeyondATableAreRefused) {
  io::Manifest manifest = toyManifest();
  manifest.entries[0].limits = {{{"batch"}, false, 2, "places"}};
  write(manifest);
  auto module = Module::load(folder);
  ASSERT_TRUE(module.ok()) << messageOf(module);
  auto call = [&](int64_t batch) {
    Array x = makeArray<float>(HONE_F32, {batch, 3}, std::vector<float>(static_cast<size_t>(batch) * 3, 1));
    NamedTensor inputs[] = {{"x", x.view()}, {"y", x.view()}};
    return messageOf((*module)->call("main", inputs));
  };
  EXPECT_EQ(call(2), "OK");
  EXPECT_EQ(call(3), "expected batch to be at most 2, for which 'places' has rows, but got 3");
}

TEST_F(Modules, AnotherTargetIsRefused) {
  io::Manifest manifest = toyManifest();
  manifest.target = "tpu";
  write(manifest);
  EXPECT_THAT(loadMessage(), HasSubstr("unsupported target 'tpu'; supported: cpu, cuda"));
}

TEST_F(Modules, AnotherCpuIsRefused) {
  io::Manifest manifest = toyManifest();
  manifest.cpuName = "future";
  manifest.cpuFeatures = {"sse4.2", "avx4096"};
  write(manifest);
  EXPECT_THAT(loadMessage(), HasSubstr("this artefact was built for future (sse4.2, avx4096); this CPU lacks avx4096"));
}

TEST_F(Modules, AnEntryThatTheProgramLacksIsNamed) {
  io::Manifest manifest = toyManifest();
  manifest.entries[0].name = "side";
  write(manifest);
  EXPECT_THAT(loadMessage(), HasSubstr("has no entry 'side'"));
}

TEST_F(Modules, OutputsThatContradictTheManifestAreAFaultOfTheArtefact) {
  io::Manifest manifest = toyManifest();
  manifest.entries[0].outputs[0].shape[1] = io::Dim::fixed(4);
  write(manifest);
  Array x = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3});
  NamedTensor inputs[] = {{"x", x.view()}, {"y", x.view()}};
  auto outputs = load()->call("main", inputs);
  EXPECT_EQ(outputs.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(messageOf(outputs), HasSubstr("output 'sum' the shape [1, 3], but the manifest says [batch, 4]"));
}

TEST_F(Modules, AnotherProgramVersionIsRefused) {
  write(toyManifest(), HONE_TEST_PROGRAM_OTHER_VERSION);
  EXPECT_THAT(loadMessage(), HasSubstr("unsupported program version 99; supported: 2"));
}

TEST_F(Modules, AMissingKernelIsNamed) {
  write(toyManifest(), HONE_TEST_PROGRAM_OTHER_KERNEL);
  EXPECT_THAT(loadMessage(), HasSubstr("needs hone.future.f32, which this runtime does not have"));
}

TEST_F(Modules, ALibraryThatIsNoProgramIsRefused) {
  ASSERT_EQ(messageOf(io::writeFile(temporary.file("text.so"), "not a library at all, but of some length")), "OK");
  write(toyManifest(), temporary.file("text.so"));
  EXPECT_THAT(loadMessage(), HasSubstr("cannot load"));
}

TEST(CpuFeatures, KnowsNamesAndLevels) {
  EXPECT_EQ(cpu::cpuHasFeature("64bit"), true);
  EXPECT_EQ(cpu::cpuHasFeature("sse2"), true);
  EXPECT_EQ(cpu::cpuHasFeature("avx4096"), std::nullopt);
  EXPECT_EQ(cpu::cpuHasFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu::cpuHasFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpu::cpuHasFeature("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
}

} // namespace
} // namespace hone::test
