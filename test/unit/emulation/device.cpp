// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver under test, loaded from a copy: a library that was loaded before would be the same one again.

#include "device.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace hone::test {

void Device::check(int result, const char *what) {
  if (result != 0)
    throw std::runtime_error(std::string(what) + " returns " + std::to_string(result));
}

Device::Device(const std::map<std::string, std::string> &variables) {
  std::string copy = testing::TempDir() + "driver-" + std::string(6, 'X') + ".so";
  int file = mkstemps(copy.data(), 3);
  if (file < 0)
    throw std::runtime_error("cannot write to " + copy);
  close(file);
  std::filesystem::copy_file(HONE_EMULATED_DRIVER, copy, std::filesystem::copy_options::overwrite_existing);
  library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(copy);
  if (library == nullptr)
    throw std::runtime_error(dlerror());
  for (const auto &[name, value] : variables)
    setenv(name.c_str(), value.c_str(), 1);
  // The driver reads its variables now.
  bool works = call("cuInit", 0u) == 0;
  for (const auto &[name, value] : variables)
    unsetenv(name.c_str());
  if (!works)
    return;
  void *context = nullptr;
  check(call("cuDevicePrimaryCtxRetain", &context, 0), "cuDevicePrimaryCtxRetain");
  check(call("cuCtxPushCurrent_v2", context), "cuCtxPushCurrent");
  hasContext = true;
}

Device::~Device() {
  if (hasContext)
    call("cuDevicePrimaryCtxRelease_v2", 0);
  dlclose(library);
}

void *Device::find(const char *symbol) const {
  void *function = dlsym(library, symbol);
  if (function == nullptr)
    throw std::runtime_error(dlerror());
  return function;
}

DevicePointer Device::allocate(size_t bytes) {
  DevicePointer pointer = 0;
  check(call("cuMemAlloc_v2", &pointer, bytes), "cuMemAlloc");
  return pointer;
}

std::string Device::input(const std::string &name) {
  std::ifstream in(std::string(HONE_EMULATION_INPUTS) + "/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int Device::loadText(const std::string &text) {
  return call("cuModuleLoadData", &module, static_cast<const void *>(text.c_str()));
}

void Device::loadFile(const std::string &name) { check(loadText(input(name)), "cuModuleLoadData"); }

void *Device::kernel(const std::string &name) {
  void *function = nullptr;
  check(call("cuModuleGetFunction", &function, module, name.c_str()), "cuModuleGetFunction");
  return function;
}

int Device::enqueue(void *kernel, const Shape &shape, void *stream, void **arguments) {
  return call("cuLaunchKernel", kernel, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
              shape.block[2], shape.sharedBytes, stream, arguments, static_cast<void **>(nullptr));
}

} // namespace hone::test
