// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mapping and atomic writing of files.

#include "hone/io/file.h"

#include "hone/io/descriptors.h"
#include "hone/io/output.h"
#include "hone/io/pages.h"
#include "system.h"

#include <cstdio>
#include <fcntl.h>
#include <limits>
#include <malloc.h>
#include <memory>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <zlib.h>

namespace hone::io {
namespace {

/// Why a file of this mode cannot be read, or OK.
absl::Status checkRegular(const std::string &path, mode_t mode) {
  return S_ISREG(mode) ? absl::OkStatus()
                       : invalid("cannot read ", path, ": expected a file, but it is ", kindOf(mode));
}

/// Opens what exists and has no bytes of its own (a pipe, a terminal) for writing. `mode` is what it is.
absl::StatusOr<int> openStream(const std::string &path, mode_t mode) {
  if (S_ISBLK(mode) || S_ISSOCK(mode))
    return invalid("cannot write ", path, ": it is ", kindOf(mode));
  // A pipe without a reader would let nobody open it. What a shell has opened for ">>" keeps what it has.
  int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENXIO && S_ISFIFO(mode))
    return invalid("cannot write ", path, ": nobody reads this pipe");
  if (descriptor < 0)
    return systemError("write", path);
  fcntl(descriptor, F_SETFL, O_APPEND);
  return descriptor;
}

/// What an output may replace: any file, and nothing else.
absl::Status checkReplaceable(const std::string &shown, const std::string &path) {
  struct stat there = {};
  if (lstat(path.c_str(), &there) != 0)
    return systemError("write", shown);
  return S_ISREG(there.st_mode) ? absl::OkStatus() : invalid("cannot write ", shown, ": it is ", kindOf(there.st_mode));
}

} // namespace

uint32_t crcOf(std::string_view bytes, uint32_t crc) {
  if (bytes.empty()) // zlib takes a null buffer as "start anew"
    return crc;
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

std::string crcText(uint32_t crc) {
  char digits[2 * sizeof crc + 1];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
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

void keepStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) // then it is the lowest free number, which open() gives
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

absl::StatusOr<int> openForReading(const std::string &path, uint64_t &size) {
  struct stat information = {};
  if (stat(path.c_str(), &information) != 0)
    return systemError("open", path);
  // Opening alone does something to a device, and waits for the writer of a pipe: also of one that comes to be there right now.
  HONE_RETURN_IF_ERROR(checkRegular(path, information.st_mode));
  int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError("open", path);
  absl::Status status =
      fstat(descriptor, &information) == 0 ? checkRegular(path, information.st_mode) : systemError("read", path);
  size = static_cast<uint64_t>(information.st_size);
  if (status.ok())
    return descriptor;
  close(descriptor);
  return status;
}

absl::Status checkNoLink(const std::string &path) {
  struct stat information = {};
  bool isLink = lstat(path.c_str(), &information) == 0 && S_ISLNK(information.st_mode);
  return isLink ? invalid("cannot open ", path, ": it is a symbolic link") : absl::OkStatus();
}

absl::StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  uint64_t size = 0;
  HONE_ASSIGN_OR_RETURN(int descriptor, openForReading(path, size));
  void *address = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  absl::Status status = address == MAP_FAILED ? systemError("map", path) : absl::OkStatus();
  close(descriptor);
  if (!status.ok())
    return status;
  MappedFile file;
  file.bytes = static_cast<const uint8_t *>(address);
  file.length = size;
  return file;
}

void MappedFile::adviseHugePages() const {
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

void adviseRandom(const void *begin, uint64_t bytes) {
  madvise(const_cast<void *>(begin), bytes, MADV_RANDOM); // a wish
}

bool isResident(const void *address) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(address);
  unsigned char is = 1;
  return mincore(reinterpret_cast<void *>(at / page * page), page, &is) != 0 || (is & 1) != 0;
}

void prefetchPages(const void *begin, uint64_t bytes) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), from = reinterpret_cast<uintptr_t>(begin);
  uintptr_t inPage = from % page;
  madvise(reinterpret_cast<void *>(from - inPage), bytes + inPage, MADV_WILLNEED); // a wish
}

std::shared_ptr<char> mapHugePages(uint64_t bytes) {
  constexpr uint64_t page = uint64_t{2} << 20; // of x86-64
  if (bytes < page || bytes > std::numeric_limits<uint64_t>::max() - page)
    return nullptr;
  uint64_t mapped = bytes + page; // for the alignment
  void *begin = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED)
    return nullptr;
  void *aligned = begin;
  uint64_t room = mapped;
  std::align(page, bytes, aligned, room);
  (void)::madvise(aligned, bytes, MADV_HUGEPAGE); // a wish
  return {static_cast<char *>(aligned), [begin, mapped](char *) { ::munmap(begin, mapped); }};
}

void trimHeap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

bool mayHaveBytes(uint64_t bytes) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

void ScratchFile::release(uint64_t begin, uint64_t end) const { releasePages(bytes + begin, end - begin); }

absl::StatusOr<ScratchFile> ScratchFile::create(const std::string &path, uint64_t size) {
  int descriptor = -1;
  std::string name = path;
  // The name is gone before anybody else could want it, also where an interrupt comes in between.
  (void)makeBeside(path, [&](const std::string &free) {
    name = free;
    descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return descriptor >= 0;
  });
  if (descriptor < 0)
    return systemError("write", name);
  // All of it now: a page without room on the disk would end the process when it is written.
  errno = mayHaveBytes(size) ? posix_fallocate(descriptor, 0, static_cast<off_t>(size)) : EFBIG;
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
  HONE_ASSIGN_OR_RETURN(writer.path, followLinks(path));
  struct stat there = {};
  bool exists = lstat(writer.path.c_str(), &there) == 0;
  bool isOpenFile = exists && S_ISLNK(there.st_mode);
  if (isOpenFile && stat(path.c_str(), &there) != 0)
    return systemError("write", path);
  if (exists && S_ISDIR(there.st_mode))
    return invalid("cannot write ", path, ": it is a folder");
  if (isOpenFile || (exists && !S_ISREG(there.st_mode))) {
    writer.path = path;
    HONE_ASSIGN_OR_RETURN(writer.descriptor, openStream(path, there.st_mode));
    return writer;
  }
  // What nobody else could read before, nobody else can read meanwhile.
  writer.temporary = makeBeside(writer.path, [&](const std::string &free) {
    writer.descriptor = ::open(free.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
    return writer.descriptor >= 0;
  });
  if (writer.descriptor < 0)
    return systemError("write", path);
  if (exists)
    fchmod(writer.descriptor, there.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
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

absl::Status FileWriter::commit(const ReplacementCheck &check) {
  HONE_RETURN_IF_ERROR(flush());
  // A late write error (quota, network file systems) shows at close, so that comes before the rename.
  bool whole = close(std::exchange(descriptor, -1)) == 0;
  if (whole && temporary.path().empty())
    return absl::OkStatus();
  if (!whole)
    return systemError("write", path);
  return putInPlace(temporary, path, [&](const std::string &there) {
    absl::Status status = checkReplaceable(path, there);
    return status.ok() && check ? check(there) : status;
  });
}

absl::Status writeFile(const std::string &path, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path));
  HONE_RETURN_IF_ERROR(writer.write(bytes));
  return writer.commit();
}

} // namespace hone::io
