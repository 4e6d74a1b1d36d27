// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// program.c for a device: the same entries, whose arithmetic is in device_kernels.cu. Beside them:
//
//   forward  token 77 makes a kernel fault
//   hog      asks for as many bytes of device memory as its input says
//   echo     copy = bytes

#include "hone/runtime/device.h"

#include "toy_signature.h"

#include <stddef.h>

enum { VOCABULARY = 8, FAULTY_TOKEN = 77 };
enum { ADD, ROWS, LOGITS, COUNT, FAULT }; // kernels in the order of the manifest

static void *(*output)(hone_call *, int64_t, int64_t, const int64_t *);
static void *(*allocate)(uint64_t);
static void (*fail)(const char *);
static void (*stateAppend)(hone_call *, int64_t, const hone_tensor *, hone_tensor *);
static void (*stateView)(hone_call *, int64_t, hone_tensor *);
static int64_t (*stateLength)(hone_call *);
static int64_t (*statePadding)(hone_call *, int64_t);
static int64_t (*logitsToKeep)(hone_call *, int64_t);
static void (*observe)(hone_call *, int64_t, const hone_tensor *);
static const uint8_t *(*deviceWeights)(hone_call *);
static void *(*deviceInput)(hone_call *, int64_t);
static void *(*deviceOutput)(hone_call *, int64_t, int64_t, const int64_t *);
static void (*deviceArena)(hone_call *, int64_t, const uint64_t *, void **);
static void *(*deviceAlloc)(hone_call *, uint64_t);
static void (*deviceFree)(hone_call *, void *);
static void (*launch)(hone_call *, int64_t, const int64_t *, void **);
static void (*deviceCopy)(hone_call *, void *, const void *, uint64_t);
static void (*upload)(hone_call *, void *, const void *, uint64_t);
static void (*fetch)(hone_call *, void *, const void *, uint64_t);

enum { THREADS = 64 };

static void launchFor(hone_call *call, int64_t kernel, int64_t count, void **arguments) {
  int64_t shape[7] = {(count + THREADS - 1) / THREADS, 1, 1, THREADS, 1, 1, 0};
  launch(call, kernel, shape, arguments);
}

static void runMain(hone_call *call) {
  const hone_tensor *x = &call->inputs[0];
  int64_t count = x->sizes[0] * 3, whole = count > 0 ? count : 1, columns = 3;
  uint64_t bytes[2] = {(uint64_t)count * sizeof(float), (uint64_t)count * sizeof(float)};
  void *slots[2];
  if (count > 0 && ((float *)x->data)[0] < 0)
    fail("expected x to begin with a positive number");
  deviceArena(call, 2, bytes, slots);
  const void *first = deviceInput(call, 0), *again = deviceInput(call, 0), *second = deviceInput(call, 1);
  if (first != again)
    fail("an input was copied twice");
  launchFor(call, ADD, count, (void *[]){&slots[0], &first, &second, &count, &whole});
  deviceCopy(call, slots[1], slots[0], bytes[0]);
  void *sum = deviceOutput(call, 0, 2, x->sizes);
  const uint8_t *offset = deviceWeights(call);
  launchFor(call, ADD, count, (void *[]){&sum, &slots[1], &offset, &count, &columns});
  *(int64_t *)output(call, 1, 0, NULL) = x->sizes[0];
}

static void appendTokens(hone_call *call, const hone_tensor *tokens, hone_tensor *all) {
  int64_t batch = tokens->sizes[0], sequence = tokens->sizes[1], length = stateLength(call), count = batch * sequence;
  const void *values = deviceInput(call, 0);
  void *fresh = deviceAlloc(call, (uint64_t)count * 2 * sizeof(float));
  launchFor(call, ROWS, count, (void *[]){&fresh, &values, &count, &length, &sequence});
  hone_tensor view = {fresh, HONE_F32, 4, {batch, 1, sequence, 2}, {sequence * 2, sequence * 2, 2, 1}};
  observe(call, 4, &view);
  stateAppend(call, 0, &view, all);
  deviceFree(call, fresh);
  for (int64_t i = 0; i < count; ++i) {
    int64_t token = ((int64_t *)tokens->data)[i];
    if (token == FAULTY_TOKEN)
      launchFor(call, FAULT, 1, NULL);
    if (token < 0)
      fail("expected tokens to be at least 0");
  }
}

static void runForward(hone_call *call) {
  const hone_tensor *tokens = &call->inputs[0];
  int64_t batch = tokens->sizes[0], sequence = tokens->sizes[1], length = stateLength(call);
  hone_tensor before, all;
  stateView(call, 0, &before);
  if (before.sizes[2] != length)
    fail("the view before the append does not have the session's length");
  appendTokens(call, tokens, &all);
  int64_t rows = logitsToKeep(call, sequence), count = batch * rows, first = length + sequence - rows;
  int64_t vocabulary = VOCABULARY, sizes[3] = {batch, rows, VOCABULARY};
  int64_t *counts = allocate((uint64_t)batch * sizeof(int64_t));
  for (int64_t b = 0; b < batch; ++b)
    counts[b] = statePadding(call, b);
  void *padding;
  uint64_t bytes = (uint64_t)batch * sizeof(int64_t);
  deviceArena(call, 1, &bytes, &padding); // the same in each step, so that a graph can have the copy
  upload(call, padding, counts, bytes);
  counts[0] = -1; // what was uploaded is what was there
  void *logits = deviceOutput(call, 0, 3, sizes);
  launchFor(
      call, LOGITS, count,
      (void *[]){&logits, &all.data, &padding, &all.strides[0], &all.strides[2], &count, &rows, &first, &vocabulary});
}

static void runCount(hone_call *call) {
  hone_tensor before, after;
  stateView(call, 0, &before);
  void *calls = deviceAlloc(call, sizeof(int64_t));
  launchFor(call, COUNT, 1, (void *[]){&calls, &before.data});
  hone_tensor view = {calls, HONE_I64, 1, {1}, {1}};
  stateAppend(call, 0, &view, &after);
  fetch(call, output(call, 0, 0, NULL), after.data, sizeof(int64_t));
}

static void runHog(hone_call *call) {
  uint64_t bytes = *(uint64_t *)call->inputs[0].data;
  void *slot = NULL;
  deviceArena(call, 1, &bytes, &slot);
}

static void runEcho(hone_call *call) {
  const hone_tensor *bytes = &call->inputs[0];
  deviceCopy(call, deviceOutput(call, 0, 1, bytes->sizes), deviceInput(call, 0), (uint64_t)bytes->sizes[0]);
}

static const hone_import imports[] = {
    {"hone_rt_output", (void **)&output},
    {"hone_rt_alloc", (void **)&allocate},
    {"hone_rt_fail", (void **)&fail},
    {"hone_rt_state_append", (void **)&stateAppend},
    {"hone_rt_state_view", (void **)&stateView},
    {"hone_rt_state_length", (void **)&stateLength},
    {"hone_rt_state_padding", (void **)&statePadding},
    {"hone_rt_logits_to_keep", (void **)&logitsToKeep},
    {"hone_rt_observe", (void **)&observe},
    {"hone_rt_device_weights", (void **)&deviceWeights},
    {"hone_rt_device_input", (void **)&deviceInput},
    {"hone_rt_device_output", (void **)&deviceOutput},
    {"hone_rt_device_arena", (void **)&deviceArena},
    {"hone_rt_device_alloc", (void **)&deviceAlloc},
    {"hone_rt_device_free", (void **)&deviceFree},
    {"hone_rt_launch", (void **)&launch},
    {"hone_rt_device_copy", (void **)&deviceCopy},
    {"hone_rt_upload", (void **)&upload},
    {"hone_rt_fetch", (void **)&fetch},
};

static const hone_entry entries[] = {
    {"main", runMain},      {"forward", runForward}, {"count", runCount},
    {"verify", runForward}, {"hog", runHog},         {"echo", runEcho},
};

extern const hone_program hone_program_description __asm__("hone_program");
const hone_program hone_program_description = {
    HONE_PROGRAM_ABI_VERSION,
    sizeof imports / sizeof imports[0],
    imports,
    sizeof entries / sizeof entries[0],
    0,
    entries,
};
