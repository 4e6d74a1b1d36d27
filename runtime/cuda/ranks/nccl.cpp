// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening NCCL, and its errors in words.

#include "cuda/ranks/nccl.h"

#include "cuda/function_finder.h"

#include <mutex>

namespace hone::rt::cuda {
namespace {

using io::cat;

/// The first version that says of its last error what it was (ncclGetLastError), as ncclGetVersion counts since 2.9.
constexpr int kOldestNccl = 21300;

std::string nameOf(int version) {
  int major = version < 10000 ? version / 1000 : version / 10000;
  return cat(major, ".", (version - major * (version < 10000 ? 1000 : 10000)) / 100, ".", version % 100);
}

template <typename... Words> absl::Status unusable(const Words &...words) {
  return absl::FailedPreconditionError(cat("cannot connect the GPUs of ranks: ", words...));
}

} // namespace

absl::StatusOr<const Nccl *> Nccl::get() {
  static std::mutex mutex;
  static std::unique_ptr<const Nccl> machine;
  std::lock_guard lock(mutex);
  if (!machine) {
    HONE_ASSIGN_OR_RETURN(machine, open("libnccl.so.2"));
  }
  return machine.get();
}

absl::StatusOr<std::unique_ptr<const Nccl>> Nccl::open(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return unusable("NCCL cannot be loaded: ", dlerror());
  std::unique_ptr<Nccl> nccl(new Nccl());
  FunctionFinder functions(library);
#define HONE_NCCL_FUNCTION(result, name, parameters) functions.find(nccl->name, #name);
#include "cuda/ranks/nccl_functions.def"
#undef HONE_NCCL_FUNCTION
  HONE_RETURN_IF_ERROR(nccl->checkVersion(file)); // an old one lacks functions
  if (functions.missing())
    return unusable(file, " has no function ", functions.missing());
  return std::unique_ptr<const Nccl>(std::move(nccl));
}

absl::Status Nccl::checkVersion(const char *file) const {
  int version = 0;
  if (!ncclGetVersion || ncclGetVersion(&version) != ncclSuccess || version >= kOldestNccl)
    return absl::OkStatus();
  return unusable("expected NCCL ", nameOf(kOldestNccl), " or newer, but ", file, " is ", nameOf(version));
}

absl::Status Nccl::check(ncclResult_t result, std::string_view what) const {
  if (result == ncclSuccess)
    return absl::OkStatus();
  const char *last = ncclGetLastError(nullptr);
  return absl::UnavailableError(
      cat("cannot ", what, ": ", ncclGetErrorString(result), last && *last ? ": " : "", last ? last : ""));
}

} // namespace hone::rt::cuda
