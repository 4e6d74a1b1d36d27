// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor that owns its bytes: what files are read into and what calls return.

#ifndef HONE_IO_ARRAY_H
#define HONE_IO_ARRAY_H

#include "hone/io/dtype.h"
#include "hone/io/status.h"

#include <cstdlib>
#include <memory>

namespace hone::io {

/// Dense, row-major, 64-byte aligned. Moves; copies are asked for by name. The default is an f32 of shape [0].
class Array {
public:
  Array() = default;

  /// Uninitialised elements. Fails for more than HONE_MAX_RANK dimensions, sizes that overflow, or no memory.
  static absl::StatusOr<Array> create(hone_dtype dtype, std::vector<int64_t> shape);

  /// Elements whose bits are 0. Fails as `create` does. Of a large array, pages take memory as they are first written.
  static absl::StatusOr<Array> zeros(hone_dtype dtype, std::vector<int64_t> shape);

  /// A dense copy of a strided view.
  static absl::StatusOr<Array> copyOf(const hone_tensor &tensor);

  hone_dtype dtype() const { return elementType; }
  std::span<const int64_t> shape() const { return sizes; }
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t count() const { return elements; }
  int64_t bytes() const { return elements * dtypeBytes(elementType); }
  char *data() { return memory.get(); }
  const char *data() const { return memory.get(); }

  /// Elements as a C++ type of the same size.
  template <typename Element> std::span<const Element> as() const {
    return {reinterpret_cast<const Element *>(memory.get()), static_cast<size_t>(elements)};
  }
  template <typename Element> std::span<Element> as() {
    return {reinterpret_cast<Element *>(memory.get()), static_cast<size_t>(elements)};
  }

  /// The array as the ABI's view; valid while the array lives.
  hone_tensor view() const;

  /// Reads the same bytes as another type of the same size (a u16 file holds the bits of bf16).
  absl::Status reinterpret(hone_dtype dtype);

private:
  struct Free {
    void operator()(char *) const { std::free(block); }
    void *block; // what was allocated, in which the elements begin at an aligned address
  };
  using Memory = std::unique_ptr<char, Free>;

  static absl::StatusOr<Array> over(hone_dtype dtype, std::vector<int64_t> shape, Memory (*allocate)(size_t bytes));
  static Memory allocateAny(size_t bytes);
  static Memory allocateZeros(size_t bytes);

  hone_dtype elementType = HONE_F32;
  std::vector<int64_t> sizes = {0};
  int64_t elements = 0;
  Memory memory;
};

/// A dense row-major view of `data`.
hone_tensor denseView(void *data, hone_dtype dtype, std::span<const int64_t> sizes);

/// True where the view's elements lie one after the other in row-major order.
bool isDense(const hone_tensor &tensor);

/// Elements of a view that is known to be valid.
int64_t elementCount(const hone_tensor &tensor);

/// Copies element by element between two views of one dtype and shape.
void copyElements(const hone_tensor &from, const hone_tensor &to);

} // namespace hone::io

#endif // HONE_IO_ARRAY_H
