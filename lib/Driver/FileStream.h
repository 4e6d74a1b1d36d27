// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's streams onto files that appear once they are whole.

#ifndef HONE_LIB_DRIVER_FILESTREAM_H
#define HONE_LIB_DRIVER_FILESTREAM_H

#include "hone/io/file.h"

#include "llvm/Support/raw_ostream.h"

namespace hone {

/// Hands what is printed to a file, which the caller commits after flush(); the first failure stays in `status`.
class FileStream : public llvm::raw_ostream {
public:
  explicit FileStream(io::FileWriter &writer) : writer(writer) { SetBufferSize(size_t(1) << 16); }
  ~FileStream() override { flush(); }
  absl::Status status;

protected:
  void write_impl(const char *bytes, size_t size) override {
    if (status.ok())
      status = writer.write({bytes, size});
    written += size;
  }
  uint64_t current_pos() const override { return written; }

  io::FileWriter &writer;
  uint64_t written = 0;
};

} // namespace hone

#endif // HONE_LIB_DRIVER_FILESTREAM_H
