// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Toy artefacts for a device, and the emulated driver that runs them.

#ifndef HONE_TEST_UNIT_RUNTIME_DEVICE_SUPPORT_H
#define HONE_TEST_UNIT_RUNTIME_DEVICE_SUPPORT_H

#include "hone/runtime/device.h"
#include "support.h"

#include <cstring>
#include <dlfcn.h>

namespace hone::test {
/// Whether these run on the machine's own GPU, by the variable that tests of kernels have too.
inline bool hasOwnDriver() { return std::getenv("HONE_TEST_CUDA_DRIVER") != nullptr; }

/// A file of the build, which lies beside the program where the build is not.
inline std::string testFile(const char *path) {
  std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / std::filesystem::path(path).filename();
  return std::filesystem::exists(beside) ? beside.string() : path;
}

/// The emulated driver is the one that the runtime finds from now on: the loader knows a library that is there by its name.
inline void useEmulatedDriver() {
  if (hasOwnDriver())
    return;
  ASSERT_NE(dlopen(HONE_TEST_EMULATED_DRIVER, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
}

/// What a statement says of an emulated GPU that a variable changes. The driver looks at its variables once, so that each of them needs
/// a process of its own.
class EmulatedVariables : public testing::Test {
protected:
  void SetUp() override {
    if (hasOwnDriver())
      GTEST_SKIP() << "only an emulated driver has such variables";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  static void expect(const char *variable, const std::string &value, const std::function<std::string()> &messageOf,
                     const std::string &message) {
    const char *current = std::getenv(variable);
    std::optional<std::string> before = current ? std::optional<std::string>(current) : std::nullopt;
    setenv(variable, value.c_str(), 1);
    EXPECT_EXIT(std::exit((std::fputs(messageOf().c_str(), stderr), 0)), testing::ExitedWithCode(0),
                testing::HasSubstr(message));
    if (before)
      setenv(variable, before->c_str(), 1);
    else
      unsetenv(variable);
  }
};

/// What program/device_program.c offers.
inline io::Manifest deviceManifest(io::Manifest manifest = toyManifest()) {
  manifest.target = "cuda";
  manifest.device = {"sm_80",
                     "device.fatbin",
                     {"toy_add", "toy_rows", "toy_logits", "toy_count", "toy_fault"},
                     HONE_DEVICE_SERVICES_VERSION};
  io::EntryInfo hog, echo;
  hog.name = "hog";
  hog.inputs = {{"bytes", HONE_I64, {}, {}}};
  echo.name = "echo";
  echo.inputs = {{"bytes", HONE_U8, {io::Dim::symbolic("count")}, {}}};
  echo.outputs = {{"copy", HONE_U8, {io::Dim::symbolic("count")}, {}}};
  manifest.entries.insert(manifest.entries.end(), {hog, echo});
  return manifest;
}

/// The toy for a target.
inline void writeToy(const std::string &folder, std::string_view target, io::Manifest manifest = toyManifest()) {
  if (target == "cpu")
    return writeArtefact(folder, HONE_TEST_PROGRAM, manifest);
  manifest = deviceManifest(std::move(manifest));
  std::filesystem::create_directories(folder);
  std::string fatbin = *io::readFile(testFile(HONE_TEST_DEVICE_FATBIN));
  ASSERT_EQ(messageOf(io::writeFile(folder + "/device.fatbin", fatbin)), "OK");
  manifest.fileBytes["device.fatbin"] = fatbin.size();
  writeArtefact(folder, testFile(HONE_TEST_DEVICE_PROGRAM), manifest);
  useEmulatedDriver();
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_DEVICE_SUPPORT_H
