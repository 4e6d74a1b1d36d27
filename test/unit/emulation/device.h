// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A driver of its own for each test, and what tests do with it: buffers, kernels, launches.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hone::test {

using DevicePointer = unsigned long long;

/// The emulated driver, loaded anew with the variables that it reads, and a current context where it has a device.
class Device {
public:
  explicit Device(const std::map<std::string, std::string> &variables = {});
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Calls a function of the driver by its symbol; arguments have to have the types of its parameters.
  template <class... T> int call(const char *symbol, T... arguments) const {
    return reinterpret_cast<int (*)(T...)>(find(symbol))(arguments...);
  }

  /// Memory of the device with these numbers in it.
  template <class T> DevicePointer upload(const std::vector<T> &values) {
    DevicePointer pointer = allocate(values.size() * sizeof(T));
    check(call("cuMemcpyHtoD_v2", pointer, static_cast<const void *>(values.data()), values.size() * sizeof(T)),
          "cuMemcpyHtoD");
    return pointer;
  }
  template <class T> std::vector<T> download(DevicePointer pointer, size_t count) {
    std::vector<T> values(count);
    check(call("cuMemcpyDtoH_v2", static_cast<void *>(values.data()), pointer, count * sizeof(T)), "cuMemcpyDtoH");
    return values;
  }
  DevicePointer allocate(size_t bytes);

  /// Loads a file of test/unit/emulation/Inputs, or text; kernels of it are then found by their names.
  void loadFile(const std::string &name);
  int loadText(const std::string &text);
  void *kernel(const std::string &name);

  struct Shape {
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {32, 1, 1};
    unsigned sharedBytes = 0;
  };
  /// Launches on a stream; returns what the driver says.
  template <class... T> int launchOn(void *stream, const std::string &name, const Shape &shape, T... arguments) {
    void *pointers[] = {static_cast<void *>(&arguments)..., nullptr};
    return enqueue(kernel(name), shape, stream, pointers);
  }
  /// The same on the default stream.
  template <class... T> int launch(const std::string &name, const Shape &shape, T... arguments) {
    return launchOn(nullptr, name, shape, arguments...);
  }
  int synchronize() const { return call("cuCtxSynchronize"); }

  static std::string input(const std::string &name);

private:
  void *find(const char *symbol) const;
  int enqueue(void *kernel, const Shape &shape, void *stream, void **arguments);
  static void check(int result, const char *what);

  void *library = nullptr;
  void *module = nullptr;
  bool hasContext = false;
};

} // namespace hone::test
