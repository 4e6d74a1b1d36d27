// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between the host's memory and a GPU's, by way of memory that the GPU reads and writes itself.

#ifndef HONE_RUNTIME_CUDA_STAGING_H
#define HONE_RUNTIME_CUDA_STAGING_H

#include "cuda/stream.h"

#include <array>
#include <vector>

namespace hone::rt::cuda {

/// Two chunks of pinned memory that take turns: while the GPU copies one, the host fills or empties the other. A chunk is
/// allocated when it is first needed. Small copies share a chunk, so that a call of small tensors waits for nothing but its end.
/// Used by one thread at a time, with the context current.
class Staging {
public:
  Staging(std::shared_ptr<Stream> stream, uint64_t chunkBytes) : stream(std::move(stream)), chunkBytes(chunkBytes) {}
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;
  ~Staging();

  /// Enqueues a copy to the GPU. `from` may change afterwards.
  absl::Status upload(CUdeviceptr to, const void *from, uint64_t bytes);

  /// Enqueues a copy from the GPU, which has arrived after the next flush().
  absl::Status download(void *to, CUdeviceptr from, uint64_t bytes);

  /// Waits for the stream.
  absl::Status flush();

  /// Forgets downloads that have not arrived: `to` may be gone.
  void drop();

private:
  struct Arrival {
    void *to;
    const char *from;
    uint64_t bytes;
  };
  struct Chunk {
    char *memory = nullptr;
    CUevent event = nullptr; // recorded when the chunk was left
    uint64_t used = 0;
    bool isInFlight = false;
    std::vector<Arrival> arrivals;
  };

  template <typename Copy> absl::Status inPieces(uint64_t bytes, Copy copy);
  absl::Status prepare(Chunk &chunk);
  absl::Status takeNextChunk();
  void deliver(Chunk &chunk);

  std::shared_ptr<Stream> stream;
  uint64_t chunkBytes;
  std::array<Chunk, 2> chunks;
  size_t current = 0;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_STAGING_H
