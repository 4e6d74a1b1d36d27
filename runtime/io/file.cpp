// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mapping and atomic writing of files.

#include "hone/io/file.h"

#include "hone/io/pages.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <zlib.h>

namespace hone::io {
namespace {

absl::Status systemError(std::string_view verb, const std::string &path) {
  int reason = errno;
  std::string message = cat("cannot ", verb, " ", path, ": ", std::strerror(reason));
  return reason == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

/// A name beside `path` that no other writer of this machine uses.
std::string temporaryName(const std::string &path) {
  static std::atomic<uint64_t> counter = 0;
  return cat(path, ".partial-", getpid(), "-", counter++);
}

} // namespace

uint32_t crcOf(std::string_view bytes, uint32_t crc) {
  if (bytes.empty()) // zlib takes a null buffer as "start anew"
    return crc;
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (length > 0)
    munmap(const_cast<uint8_t *>(bytes), length);
}

absl::StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError("open", path);
  struct stat information = {};
  MappedFile file;
  absl::Status status;
  if (fstat(descriptor, &information) != 0) {
    status = systemError("read", path);
  } else if (!S_ISREG(information.st_mode)) {
    status = invalid("cannot read ", path, ": not a regular file");
  } else if (information.st_size > 0) {
    size_t size = static_cast<size_t>(information.st_size);
    void *address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      status = systemError("map", path);
    } else {
      file.bytes = static_cast<const uint8_t *>(address);
      file.length = size;
    }
  }
  close(descriptor);
  if (!status.ok())
    return status;
  return file;
}

void MappedFile::askForHugePages() const {
  if (length > 0)
    madvise(const_cast<uint8_t *>(bytes), length, MADV_HUGEPAGE); // a wish: not every system or file system grants it
}

ScratchFile &ScratchFile::operator=(ScratchFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

ScratchFile::~ScratchFile() {
  if (length > 0)
    munmap(bytes, length);
}

void releasePages(const void *begin, uint64_t bytes) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), from = reinterpret_cast<uintptr_t>(begin);
  uintptr_t inPage = from % page;
  madvise(reinterpret_cast<void *>(from - inPage), bytes + inPage, MADV_DONTNEED);
}

void ScratchFile::release(uint64_t begin, uint64_t end) const { releasePages(bytes + begin, end - begin); }

absl::StatusOr<ScratchFile> ScratchFile::create(const std::string &path, uint64_t size) {
  std::string name = temporaryName(path);
  int descriptor = -1;
  {
    // The name is gone before anybody else could want it, also where an interrupt comes in between.
    TemporaryPath temporary = TemporaryPath::made(name, [&] {
      descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      return descriptor >= 0;
    });
  }
  if (descriptor < 0)
    return systemError("write", name);
  // All of it now: a page without room on the disk would end the process when it is written.
  errno = posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  void *address = errno == 0 ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  absl::Status status =
      address == MAP_FAILED ? systemError(cat("make room for ", size, " bytes beside"), path) : absl::OkStatus();
  close(descriptor);
  if (!status.ok())
    return status;
  ScratchFile file;
  file.bytes = static_cast<uint8_t *>(address);
  file.length = size;
  return file;
}

absl::StatusOr<std::string> readFile(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return std::string(file.text());
}

/// Two huge pages of x86-64, so that memory holds little.
static constexpr size_t kPieceBytes = size_t{4} << 20;

FileWriter &FileWriter::operator=(FileWriter &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(taken, other.taken);
  std::swap(pending, other.pending);
  std::swap(path, other.path);
  std::swap(temporary, other.temporary);
  return *this;
}

FileWriter::~FileWriter() { discard(); }

void FileWriter::discard() {
  if (descriptor >= 0)
    close(std::exchange(descriptor, -1));
  temporary = TemporaryPath();
}

absl::StatusOr<FileWriter> FileWriter::create(const std::string &path) {
  FileWriter writer;
  writer.path = path;
  struct stat information = {};
  bool exists = stat(path.c_str(), &information) == 0;
  if (exists && S_ISDIR(information.st_mode))
    return invalid("cannot write ", path, ": it is a folder");
  if (exists && !S_ISREG(information.st_mode)) {
    writer.descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::string temporary = temporaryName(path);
    writer.temporary = TemporaryPath::made(temporary, [&] {
      writer.descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return writer.descriptor >= 0;
    });
  }
  if (writer.descriptor < 0)
    return systemError("write", path);
  return writer;
}

absl::Status FileWriter::write(std::string_view bytes) {
  taken += bytes.size();
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, kPieceBytes - pending.size());
    pending += piece;
    bytes.remove_prefix(piece.size());
    if (pending.size() == kPieceBytes)
      HONE_RETURN_IF_ERROR(flush());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::flush() {
  for (std::string_view bytes = pending; !bytes.empty();) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  pending.clear();
  return absl::OkStatus();
}

absl::Status FileWriter::overwrite(uint64_t position, std::string_view bytes) {
  HONE_RETURN_IF_ERROR(flush());
  while (!bytes.empty()) {
    ssize_t count = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
    position += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status FileWriter::commit() {
  HONE_RETURN_IF_ERROR(flush());
  // A late write error (quota, network file systems) shows at close, so that comes before the rename.
  bool whole = close(std::exchange(descriptor, -1)) == 0;
  if (whole && temporary.path().empty())
    return absl::OkStatus();
  if (!whole || std::rename(temporary.path().c_str(), path.c_str()) != 0)
    return systemError("write", path);
  temporary.release();
  return absl::OkStatus();
}

absl::Status writeFile(const std::string &path, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path));
  HONE_RETURN_IF_ERROR(writer.write(bytes));
  return writer.commit();
}

} // namespace hone::io
