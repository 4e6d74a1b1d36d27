// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces of copies in chunks of pinned memory.

#include "cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace hone::rt::cuda {

Staging::~Staging() {
  if (stream->context().isLost())
    return;
  Context::Scope scope(stream->context());
  stream->driver().cuStreamSynchronize(stream->handle()); // the GPU may still copy
  for (Chunk &chunk : chunks) {
    if (chunk.event)
      stream->driver().cuEventDestroy(chunk.event);
    if (chunk.memory)
      stream->driver().cuMemFreeHost(chunk.memory);
  }
}

absl::Status Staging::prepare(Chunk &chunk) {
  Context &context = stream->context();
  const Driver &driver = stream->driver();
  if (!chunk.event)
    HONE_RETURN_IF_ERROR(context.check(driver.cuEventCreate(&chunk.event, CU_EVENT_DISABLE_TIMING), "create an event"));
  if (chunk.memory)
    return absl::OkStatus();
  void *memory = nullptr;
  CUresult result = driver.cuMemHostAlloc(&memory, chunkBytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return absl::ResourceExhaustedError(io::cat(
        "cannot allocate ", chunkBytes, " bytes of pinned memory for copies to and from the GPU: out of memory"));
  HONE_RETURN_IF_ERROR(context.check(result, io::cat("allocate ", chunkBytes, " bytes of pinned memory")));
  chunk.memory = static_cast<char *>(memory);
  return absl::OkStatus();
}

/// The host's part of downloads that have come as far as the chunk.
void Staging::deliver(Chunk &chunk) {
  for (const Arrival &arrival : chunk.arrivals)
    std::memcpy(arrival.to, arrival.from, arrival.bytes);
  chunk.arrivals.clear();
  chunk.used = 0;
  chunk.isInFlight = false;
}

absl::Status Staging::takeNextChunk() {
  const Driver &driver = stream->driver();
  HONE_RETURN_IF_ERROR(stream->submit(/*isWhole=*/false));
  HONE_RETURN_IF_ERROR(
      stream->context().check(driver.cuEventRecord(chunks[current].event, stream->handle()), "record an event"));
  chunks[current].isInFlight = true;
  current = (current + 1) % chunks.size();
  if (!chunks[current].isInFlight)
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(stream->wait(chunks[current].event, "copy to or from the GPU"));
  deliver(chunks[current]);
  return absl::OkStatus();
}

/// Calls `copy` with a chunk, where the piece is in `bytes`, and how long it is.
template <typename Copy> absl::Status Staging::inPieces(uint64_t bytes, Copy copy) {
  for (uint64_t done = 0; done < bytes;) {
    if (chunks[current].used == chunkBytes)
      HONE_RETURN_IF_ERROR(takeNextChunk());
    Chunk &chunk = chunks[current];
    HONE_RETURN_IF_ERROR(prepare(chunk));
    uint64_t piece = std::min(bytes - done, chunkBytes - chunk.used);
    HONE_RETURN_IF_ERROR(copy(chunk, done, piece));
    done += piece;
    uint64_t end = chunk.used + piece;
    chunk.used = std::min((end + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment, chunkBytes);
  }
  return absl::OkStatus();
}

absl::Status Staging::upload(CUdeviceptr to, const void *from, uint64_t bytes) {
  return inPieces(bytes, [&](Chunk &chunk, uint64_t done, uint64_t piece) {
    char *memory = chunk.memory + chunk.used;
    std::memcpy(memory, static_cast<const char *>(from) + done, piece);
    return stream->move(Work::Kind::ToDevice, to + done, reinterpret_cast<uint64_t>(memory), piece);
  });
}

absl::Status Staging::download(void *to, CUdeviceptr from, uint64_t bytes) {
  return inPieces(bytes, [&](Chunk &chunk, uint64_t done, uint64_t piece) {
    char *memory = chunk.memory + chunk.used;
    chunk.arrivals.push_back({static_cast<char *>(to) + done, memory, piece});
    return stream->move(Work::Kind::ToHost, reinterpret_cast<uint64_t>(memory), from + done, piece);
  });
}

absl::Status Staging::flush() {
  HONE_RETURN_IF_ERROR(stream->wait());
  for (Chunk &chunk : chunks)
    deliver(chunk);
  return absl::OkStatus();
}

void Staging::drop() {
  for (Chunk &chunk : chunks)
    chunk.arrivals.clear();
}

} // namespace hone::rt::cuda
