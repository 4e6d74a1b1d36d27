// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When streams do what was enqueued, and what becomes of faults.

#include "driver/queue.h"

#include "driver/context.h"

#include <cstdio>

namespace hone::emulation {
namespace {

// A device has so many places for commands; then a call waits.
constexpr uint64_t kMostEnqueued = 1024;

int errorOf(Fault::Kind kind) {
  switch (kind) {
  case Fault::Kind::IllegalAddress:
    return kIllegalAddress;
  case Fault::Kind::MisalignedAddress:
    return kMisalignedAddress;
  case Fault::Kind::IllegalInstruction:
    return kIllegalInstruction;
  case Fault::Kind::Assertion:
    return kAssert;
  case Fault::Kind::Trap:
    return kLaunchFailed;
  case Fault::Kind::Deadlock:
    return kLaunchFailed;
  case Fault::Kind::Timeout:
    return kLaunchTimeout;
  }
  return kLaunchFailed;
}

void launch(const Launch &launch) {
  Driver &driver = Driver::get();
  Counters::Kernel &counted = driver.counters.kernels[launch.kernel->name];
  ++counted.launches;
  static uint64_t launched = 0;
  if (++launched == driver.environment.faultAt)
    throw Fault(Fault::Kind::IllegalAddress,
                "kernel '" + launch.kernel->name + "': the fault that HONE_EMULATED_FAULT_AT asks for");
  if (uint64_t most = driver.environment.instructions; most != 0 && driver.counters.instructions() > most)
    throw Fault(Fault::Kind::Timeout,
                "kernel '" + launch.kernel->name +
                    "': more instructions were executed before it than HONE_EMULATED_INSTRUCTIONS allows");
  counted.instructions += execute(launch);
}

} // namespace

void perform(Context &context, const Operation &operation) {
  // A context that has faulted does nothing more; waiting for it tells why.
  if (context.error != kSuccess)
    return;
  try {
    if (operation.launch)
      launch(*operation.launch);
    else
      operation.run();
  } catch (const Fault &fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    context.error = errorOf(fault.kind);
  }
}

void runUntil(Stream &stream, uint64_t position) {
  while (stream.executed < position && !stream.queue.empty()) {
    Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.executed;
    perform(*stream.context, operation);
  }
}

void enqueue(Stream &stream, Operation operation) {
  if (stream.capture) {
    stream.capture->operations.push_back(std::make_unique<Operation>(std::move(operation)));
    Capture::Fork &fork = stream.capture->forks[&stream];
    ++fork.operations;
    fork.latest = stream.capture->operations.back().get();
    return;
  }
  Context &context = *stream.context;
  // The default stream and those that heed it do not overtake each other.
  if (&stream == &context.defaultStream) {
    for (auto &[handle, other] : context.streams)
      if (other->blocking)
        runAll(*other);
  } else if (stream.blocking) {
    runAll(context.defaultStream);
  }
  stream.queue.push_back(std::move(operation));
  ++stream.enqueued;
  if (stream.queue.size() > kMostEnqueued)
    runUntil(stream, stream.executed + 1);
}

} // namespace hone::emulation
