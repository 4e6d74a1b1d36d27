// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams: what was enqueued is done when somebody waits for it.
//
// Nothing runs when it is enqueued. A program that reads a result before it has waited, or that changes pinned memory that a copy
// still reads, therefore sees wrong numbers each time, where a device would show them now and then.

#pragma once

#include "driver/abi.h"
#include "ptx/launch.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hone::emulation {

class Context;
struct Stream;
struct Event;

/// Something that a stream does. A launch is kept as what it is, so that graphs can change it.
struct Operation {
  enum class Kind : uint8_t { Launch, Copy, Set, Free, Record, Wait, Graph, Host, Write };
  Kind kind;
  std::function<void()> run; // may throw Fault; of a launch: null
  std::shared_ptr<const Launch> launch;
};

/// What streams are recording, instead of doing it.
struct Capture {
  enum class Mode : int { Global, ThreadLocal, Relaxed };
  std::vector<std::unique_ptr<Operation>> operations; // which become the nodes of the graph
  Stream *origin = nullptr;
  Mode mode = Mode::Global;
  std::thread::id thread;
  bool invalidated = false;
  /// How many operations of a forked stream there are, and how many of them the origin has waited for.
  struct Fork {
    uint64_t operations = 0;
    uint64_t joined = 0;
    const Operation *latest = nullptr;
  };
  std::map<Stream *, Fork> forks;
};

struct Stream {
  Context *context = nullptr;
  bool blocking = true; // waits for the default stream, and that for it
  std::deque<Operation> queue;
  uint64_t enqueued = 0;
  uint64_t executed = 0;
  std::shared_ptr<Capture> capture;
};

struct Event {
  Context *context = nullptr;
  Stream *stream = nullptr; // where it was recorded last, or null
  uint64_t position = 0;    // of the stream after the recording
  bool timed = true;
  std::shared_ptr<std::chrono::steady_clock::time_point> time; // when it was reached
  std::shared_ptr<Capture> capture;
  uint64_t captured = 0; // operations of its stream in the capture
};

/// Enqueues, or records while the stream captures.
void enqueue(Stream &stream, Operation operation);
/// Does what was enqueued up to a position. Faults become errors of the context.
void runUntil(Stream &stream, uint64_t position);
inline void runAll(Stream &stream) { runUntil(stream, stream.enqueued); }
/// Does one operation of a launch or a graph at once.
void perform(Context &context, const Operation &operation);

} // namespace hone::emulation
