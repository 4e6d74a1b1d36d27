// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libnccl.so.2 between processes of one machine on the emulated driver, with as much of the interface as Hone calls, under the names
// and with the numbers of NVIDIA's documentation. What it enqueues are copies and functions of the host, so that it takes part in streams,
// recordings and the driver's checks of memory; ranks meet when the stream gets there.
//
// HONE_EMULATED_NCCL_VERSION: what ncclGetVersion says. HONE_EMULATED_NCCL_FAIL_AT: the n-th collective, from 1, is refused.
// HONE_EMULATED_NCCL_KILL_AT: the process is killed when the stream gets to the n-th.

#include "nccl/room.h"
#include "process_driver.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#define HONE_NCCL_API extern "C" __attribute__((visibility("default")))

using hone::emulation::CollectiveCall;
using hone::emulation::Room;

namespace {

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};
enum : int { kInt8 = 0, kFloat32 = 7 };
constexpr int kSum = 0;
constexpr size_t kIdBytes = 128;

struct UniqueId {
  char text[kIdBytes];
};

std::string lastError;

int fail(int result, std::string reason) {
  lastError = std::move(reason);
  return result;
}

long variable(const char *name, long otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

struct Driver {
  int (*cuCtxGetDevice)(int *);
  int (*cuDeviceGetUuid)(char *, int);
  int (*cuMemHostAlloc)(void **, size_t, unsigned);
  int (*cuMemcpyDtoHAsync)(void *, unsigned long long, size_t, void *);
  int (*cuMemcpyHtoDAsync)(unsigned long long, const void *, size_t, void *);
  int (*cuLaunchHostFunc)(void *, void (*)(void *), void *);
};

const Driver *findDriver() {
  return hone::emulation::findDriver<Driver>([](Driver &driver, hone::rt::cuda::FunctionFinder &functions) {
    functions.find(driver.cuCtxGetDevice, "cuCtxGetDevice");
    functions.find(driver.cuDeviceGetUuid, "cuDeviceGetUuid_v2");
    functions.find(driver.cuMemHostAlloc, "cuMemHostAlloc");
    functions.find(driver.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
    functions.find(driver.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
    functions.find(driver.cuLaunchHostFunc, "cuLaunchHostFunc");
  });
}

/// Pinned memory between a stream's copies and its exchanges, which come one after the other. Graphs keep what they were recorded with.
struct Staging {
  std::byte *mine = nullptr, *all = nullptr;
  size_t bytes = 0; // of `mine`
};

struct Communicator;

struct Exchange {
  Communicator *communicator;
  CollectiveCall call;
  Staging staging;
};

struct Communicator {
  Room *room;
  int error = kSuccess; // since it was made
  std::string reason;
  std::map<void *, Staging> stagings; // by stream
  std::deque<Exchange> exchanges;     // that were enqueued: a graph does them again
};

void addUp(Exchange &exchange, int ranks) {
  auto *sums = reinterpret_cast<float *>(exchange.staging.all);
  size_t count = exchange.call.bytes / sizeof(float);
  for (size_t i = 0; i < count; ++i)
    for (int rank = 1; rank < ranks; ++rank)
      sums[i] += sums[static_cast<size_t>(rank) * count + i];
}

/// When the stream gets there.
void meet(void *data) {
  auto &exchange = *static_cast<Exchange *>(data);
  Communicator &communicator = *exchange.communicator;
  static long met = 0;
  if (++met == variable("HONE_EMULATED_NCCL_KILL_AT", 0))
    std::raise(SIGKILL);
  if (communicator.error != kSuccess)
    return;
  size_t bytes = exchange.call.bytes, ranks = static_cast<size_t>(communicator.room->ranks());
  switch (communicator.room->exchange(exchange.call, {exchange.staging.mine, bytes},
                                      {exchange.staging.all, ranks * bytes})) {
  case Room::Outcome::Done:
    if (exchange.call.kind == CollectiveCall::Kind::AllReduce)
      addUp(exchange, communicator.room->ranks());
    break;
  case Room::Outcome::Alone:
    communicator.error = kRemoteError;
    communicator.reason = "another process has ended";
    break;
  case Room::Outcome::Different:
    communicator.error = kInvalidUsage;
    communicator.reason = "ranks made different calls";
  }
}

bool reserve(Staging &staging, size_t bytes, int ranks) {
  if (staging.bytes >= bytes)
    return true;
  Staging larger = {nullptr, nullptr, bytes};
  void *mine = nullptr, *all = nullptr;
  if (findDriver()->cuMemHostAlloc(&mine, bytes, 0) != 0 ||
      findDriver()->cuMemHostAlloc(&all, bytes * static_cast<size_t>(ranks), 0) != 0)
    return false;
  larger.mine = static_cast<std::byte *>(mine);
  larger.all = static_cast<std::byte *>(all);
  staging = larger;
  return true;
}

int enqueue(Communicator *communicator, const CollectiveCall &call, const void *from, void *to, void *stream) {
  static long enqueued = 0;
  if (!communicator || !from || !to)
    return fail(kInvalidArgument, "a null pointer");
  if (++enqueued == variable("HONE_EMULATED_NCCL_FAIL_AT", 0))
    return fail(kInternalError, "the failure that HONE_EMULATED_NCCL_FAIL_AT asks for");
  int ranks = communicator->room->ranks();
  Staging &staging = communicator->stagings[stream];
  if (!reserve(staging, call.bytes, ranks))
    return fail(kSystemError, "no pinned memory");
  communicator->exchanges.push_back({communicator, call, staging});
  const Driver &driver = *findDriver();
  size_t results = call.kind == CollectiveCall::Kind::AllGather ? call.bytes * static_cast<size_t>(ranks) : call.bytes;
  if (driver.cuMemcpyDtoHAsync(staging.mine, reinterpret_cast<unsigned long long>(from), call.bytes, stream) != 0 ||
      driver.cuLaunchHostFunc(stream, meet, &communicator->exchanges.back()) != 0 ||
      driver.cuMemcpyHtoDAsync(reinterpret_cast<unsigned long long>(to), staging.all, results, stream) != 0)
    return fail(kUnhandledCudaError, "the driver refuses what was enqueued");
  return kSuccess;
}

} // namespace

HONE_NCCL_API int ncclGetVersion(int *version) {
  *version = static_cast<int>(variable("HONE_EMULATED_NCCL_VERSION", 22809));
  return kSuccess;
}

HONE_NCCL_API const char *ncclGetErrorString(int result) {
  switch (result) {
  case kSuccess:
    return "no error";
  case kUnhandledCudaError:
    return "unhandled cuda error";
  case kSystemError:
    return "unhandled system error";
  case kInternalError:
    return "internal error";
  case kInvalidArgument:
    return "invalid argument";
  case kInvalidUsage:
    return "invalid usage";
  case kRemoteError:
    return "remote process exited or there was a network error";
  default:
    return "unknown result code";
  }
}

HONE_NCCL_API const char *ncclGetLastError(Communicator *) { return lastError.c_str(); }

HONE_NCCL_API int ncclGetUniqueId(UniqueId *id) {
  std::string name = Room::create();
  if (name.empty() || name.size() >= kIdBytes)
    return fail(kSystemError, "no shared memory");
  std::memcpy(id->text, name.c_str(), name.size() + 1);
  return kSuccess;
}

HONE_NCCL_API int ncclCommInitRank(Communicator **communicator, int ranks, UniqueId id, int rank) {
  int device = 0;
  hone::emulation::Uuid uuid;
  *communicator = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks || !std::memchr(id.text, 0, kIdBytes))
    return fail(kInvalidArgument, "no such rank");
  if (!findDriver() || findDriver()->cuCtxGetDevice(&device) != 0 ||
      findDriver()->cuDeviceGetUuid(uuid.data(), device) != 0)
    return fail(kUnhandledCudaError, "no device is current");
  std::string reason;
  Room *room = Room::enter(id.text, ranks, rank, uuid, reason);
  if (!room)
    return fail(kInvalidUsage, reason);
  *communicator = new Communicator{room, kSuccess, "", {}, {}};
  return kSuccess;
}

HONE_NCCL_API int ncclCommAbort(Communicator *communicator) {
  communicator->error = kInvalidUsage; // what is still enqueued does nothing
  communicator->room->leave();
  return kSuccess;
}

HONE_NCCL_API int ncclCommGetAsyncError(Communicator *communicator, int *error) {
  *error = communicator->error;
  if (*error != kSuccess)
    lastError = communicator->reason;
  return kSuccess;
}

HONE_NCCL_API int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                                Communicator *communicator, void *stream) {
  if (type != kFloat32 || operation != kSum)
    return fail(kInvalidArgument, "not a sum of float");
  return enqueue(communicator, {CollectiveCall::Kind::AllReduce, type, count * sizeof(float)}, from, to, stream);
}

HONE_NCCL_API int ncclAllGather(const void *from, void *to, size_t count, int type, Communicator *communicator,
                                void *stream) {
  if (type != kInt8 && type != kFloat32)
    return fail(kInvalidArgument, "neither bytes nor float");
  size_t width = type == kFloat32 ? sizeof(float) : 1;
  return enqueue(communicator, {CollectiveCall::Kind::AllGather, type, count * width}, from, to, stream);
}
