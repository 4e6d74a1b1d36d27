// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: streams and events.

#include "driver/api.h"

using namespace hone::emulation;

namespace hone::emulation {

int submit(Call &call, Stream &stream, Operation operation) {
  if (stream.capture && stream.capture->invalidated)
    return kStreamCaptureInvalidated;
  if (&stream == &call.context->defaultStream)
    for (auto &[handle, other] : call.context->streams)
      if (other->capture && other->blocking) {
        other->capture->invalidated = true;
        return kStreamCaptureImplicit;
      }
  enqueue(stream, std::move(operation));
  return kSuccess;
}

int waitFor(Call &call, Stream &stream) {
  if (stream.capture) {
    stream.capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  ++call.driver.counters.synchronisations;
  runAll(stream);
  call.driver.report();
  return call.context->error;
}

} // namespace hone::emulation

namespace {

Event *eventOf(Call &call, void *handle) {
  Event *event = find(call.context->events, handle);
  if (event == nullptr)
    call.status = kInvalidHandle;
  return event;
}

bool isPending(const Event &event) { return event.stream != nullptr && event.stream->executed < event.position; }

/// What comes later on the stream becomes part of the event's recording.
int waitForCaptured(Stream &stream, const Event &event) {
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.capture->forks[&stream];
  } else if (stream.capture != event.capture) {
    stream.capture->invalidated = true;
    return kStreamCaptureIsolation;
  }
  if (&stream == event.capture->origin)
    event.capture->forks[event.stream].joined = event.captured;
  return kSuccess;
}

} // namespace

HONE_DRIVER_API cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) {
  constexpr unsigned kNonBlocking = 1;
  Call call;
  if (!call || flags > kNonBlocking)
    return call ? kInvalidValue : call.status;
  auto created = std::make_unique<Stream>();
  created->context = call.context;
  created->blocking = flags != kNonBlocking;
  *stream = keep(call.context->streams, std::move(created));
  return kSuccess;
}

HONE_DRIVER_API cuStreamCreate(Stream **stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

HONE_DRIVER_API cuStreamDestroy_v2(void *handle) {
  Call call;
  // A context that has faulted is taken down too.
  Stream *stream = call.context != nullptr ? find(call.context->streams, handle) : nullptr;
  if (stream == nullptr)
    return call ? kInvalidHandle : call.status;
  runAll(*stream);
  for (auto &[key, event] : call.context->events)
    if (event->stream == stream)
      event->stream = nullptr;
  call.context->streams.erase(stream);
  return call.context->error;
}

HONE_DRIVER_API cuStreamSynchronize(void *handle) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  return stream != nullptr ? waitFor(call, *stream) : call.status;
}

HONE_DRIVER_API cuStreamQuery(void *handle) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr)
    return call.status;
  if (stream->capture) {
    stream->capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  // Who asks again and again is answered at last.
  bool ready = stream->queue.empty();
  runUntil(*stream, stream->executed + 1);
  return call.context->error != kSuccess ? call.context->error : ready ? kSuccess : kNotReady;
}

HONE_DRIVER_API cuStreamGetPriority(void *handle, int *priority) {
  Call call;
  if (call && call.stream(handle) != nullptr)
    *priority = 0;
  return call.status;
}

HONE_DRIVER_API cuStreamWaitEvent(void *handle, void *eventHandle, unsigned flags) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  Event *event = stream != nullptr ? eventOf(call, eventHandle) : nullptr;
  if (event == nullptr)
    return call.status;
  if (event->capture)
    return waitForCaptured(*stream, *event);
  if (stream->capture) {
    stream->capture->invalidated = true;
    return kStreamCaptureIsolation;
  }
  if (event->stream == nullptr || event->stream == stream)
    return kSuccess;
  Stream *other = event->stream;
  Context *context = call.context;
  uint64_t position = event->position;
  return submit(call, *stream,
                {Operation::Kind::Wait,
                 [=] {
                   if (other == &context->defaultStream || find(context->streams, other) != nullptr)
                     runUntil(*other, position);
                 },
                 {}});
}

HONE_DRIVER_API cuLaunchHostFunc(void *handle, void (*function)(void *), void *data) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr)
    return call.status;
  return submit(call, *stream, {Operation::Kind::Host, [=] { function(data); }, {}});
}

HONE_DRIVER_API cuEventCreate(Event **event, unsigned flags) {
  constexpr unsigned kDisableTiming = 2;
  Call call;
  if (!call)
    return call.status;
  auto created = std::make_unique<Event>();
  created->context = call.context;
  created->timed = (flags & kDisableTiming) == 0;
  *event = keep(call.context->events, std::move(created));
  return kSuccess;
}

HONE_DRIVER_API cuEventDestroy_v2(void *handle) {
  Call call;
  if (call.context == nullptr || find(call.context->events, handle) == nullptr)
    return call ? kInvalidHandle : call.status;
  call.context->events.erase(handle);
  return call.context->error;
}

HONE_DRIVER_API cuEventRecord(void *eventHandle, void *handle) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  Event *event = stream != nullptr ? eventOf(call, eventHandle) : nullptr;
  if (event == nullptr)
    return call.status;
  event->stream = stream;
  event->capture = stream->capture;
  if (stream->capture) {
    event->captured = stream->capture->forks[stream].operations;
    return stream->capture->invalidated ? kStreamCaptureInvalidated : kSuccess;
  }
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  event->time = time;
  int result =
      submit(call, *stream, {Operation::Kind::Record, [time] { *time = std::chrono::steady_clock::now(); }, {}});
  event->position = stream->enqueued;
  return result;
}

HONE_DRIVER_API cuEventSynchronize(void *handle) {
  Call call;
  Event *event = call ? eventOf(call, handle) : nullptr;
  if (event == nullptr)
    return call.status;
  if (event->capture) {
    event->capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  ++call.driver.counters.synchronisations;
  if (isPending(*event))
    runUntil(*event->stream, event->position);
  call.driver.report();
  return call.context->error;
}

HONE_DRIVER_API cuEventQuery(void *handle) {
  Call call;
  Event *event = call ? eventOf(call, handle) : nullptr;
  if (event == nullptr)
    return call.status;
  bool ready = !isPending(*event);
  if (!ready)
    runUntil(*event->stream, event->stream->executed + 1);
  return call.context->error != kSuccess ? call.context->error : ready ? kSuccess : kNotReady;
}

HONE_DRIVER_API cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
  Call call;
  const Event *first = call ? eventOf(call, from) : nullptr;
  const Event *last = first != nullptr ? eventOf(call, to) : nullptr;
  if (last == nullptr)
    return call.status;
  if (!first->timed || !last->timed || !first->time || !last->time)
    return kInvalidHandle;
  if (isPending(*first) || isPending(*last))
    return kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*last->time - *first->time).count();
  return kSuccess;
}

HONE_DRIVER_API cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  return cuEventElapsedTime_v2(milliseconds, from, to);
}
