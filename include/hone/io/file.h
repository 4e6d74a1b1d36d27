// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files as a whole: mapped for reading, and written so that a reader sees all of a file or none of it.

#ifndef HONE_IO_FILE_H
#define HONE_IO_FILE_H

#include "hone/io/output.h"
#include "hone/io/status.h"
#include "hone/io/temporary.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hone::io {

/// A regular file (descriptors.h), mapped read-only. Unmapped with the object.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  static absl::StatusOr<MappedFile> open(const std::string &path);

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }
  std::string_view text() const { return {reinterpret_cast<const char *>(bytes), length}; }
  /// For bytes that are read again and again: asks the system to read the file in huge pages, and to map it by them.
  void adviseHugePages() const;

private:
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Bytes, zeros at first, in a file of their own that is mapped for reading and writing: for what may be more than memory
/// holds. The file is unlinked: nothing of it stays, however the process ends.
class ScratchFile {
public:
  ScratchFile() = default;
  ScratchFile(ScratchFile &&other) noexcept { *this = std::move(other); }
  ScratchFile &operator=(ScratchFile &&other) noexcept;
  ~ScratchFile();

  /// In the folder of `path`, a file that need not exist. Fails where the file system has less room than `size`, at least 1.
  static absl::StatusOr<ScratchFile> create(const std::string &path, uint64_t size);

  uint8_t *data() { return bytes; }
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }
  /// Leaves the bytes [begin, end) to the file until somebody reads or writes them again: until then no memory of the process
  /// holds them. Does nothing to what they are.
  void release(uint64_t begin, uint64_t end) const;

private:
  uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Whether a file of this process may be as large: writing beyond that would end the process by a signal (RLIMIT_FSIZE).
bool mayHaveBytes(uint64_t bytes);

/// CRC-32 as zip has it (polynomial 0x04C11DB7, reflected) of bytes that follow those with the sum `crc`.
uint32_t crcOf(std::string_view bytes, uint32_t crc = 0);
/// A CRC-32 as messages and files show it: eight hexadecimal digits.
std::string crcText(uint32_t crc);

/// All bytes of a small file.
absl::StatusOr<std::string> readFile(const std::string &path);

/// A file under construction, beside its place: commit() puts it there (output.h), and without that it is removed. It replaces any file, and
/// nothing else. A link stays, and what it names is written; permissions stay too. A pipe that is read, a terminal and what a shell has
/// opened are written as it comes. Bytes are written in pieces of whole huge pages: what the system keeps of the file in memory can then be
/// mapped by such pages.
class FileWriter {
public:
  FileWriter() = default;
  FileWriter(FileWriter &&other) noexcept { *this = std::move(other); }
  FileWriter &operator=(FileWriter &&other) noexcept;
  ~FileWriter();

  static absl::StatusOr<FileWriter> create(const std::string &path);

  /// Bytes may reach the file only with later ones, or with commit().
  absl::Status write(std::string_view bytes);
  uint64_t position() const { return taken; }
  /// Whether bytes that were written can be changed: not where they go to something other than a file.
  bool canOverwrite() const { return !temporary.path().empty(); }
  /// Puts other bytes in place of some that were written.
  absl::Status overwrite(uint64_t position, std::string_view bytes);
  /// Where `check` is given, it says which files may be replaced: of what is at the place then, also where nothing was before.
  absl::Status commit(const ReplacementCheck &check = nullptr);

private:
  absl::Status flush();
  void discard();

  int descriptor = -1;
  uint64_t taken = 0; // bytes of all calls of write()
  std::string pending;
  std::string path;
  TemporaryPath temporary;
};

/// Writes a whole file through a FileWriter.
absl::Status writeFile(const std::string &path, std::string_view bytes);

} // namespace hone::io

#endif // HONE_IO_FILE_H
