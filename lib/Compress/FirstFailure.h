// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which row of a weight could not be compressed.

#ifndef HONE_LIB_COMPRESS_FIRSTFAILURE_H
#define HONE_LIB_COMPRESS_FIRSTFAILURE_H

#include "hone/io/status.h"

#include <atomic>

namespace hone::compress {

/// The first row that has failed, whichever thread finds one.
class FirstFailure {
public:
  explicit FirstFailure(int64_t rows) : rows(rows), first(rows) {}

  void add(int64_t row) {
    for (int64_t seen = first; row < seen && !first.compare_exchange_weak(seen, row);)
      ;
  }
  /// Names the row and says why; OK where none has failed.
  template <typename... Parts> absl::Status status(const Parts &...why) const {
    if (first == rows)
      return absl::OkStatus();
    return io::invalid("cannot quantize row ", first.load(), ": ", why...);
  }

private:
  int64_t rows;
  std::atomic<int64_t> first;
};

} // namespace hone::compress

#endif // HONE_LIB_COMPRESS_FIRSTFAILURE_H
