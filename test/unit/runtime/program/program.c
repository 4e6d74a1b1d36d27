// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program as the compiler would write one, by hand, for tests of the runtime without the compiler.
//
//   main     sum = x + y + offset (a weight); fails with numbers where x[0][0] is negative; rows = batch
//   forward  a toy language model: the likeliest next token is (sum of the sequence's tokens so far) mod 8, where left
//            padding does not count; fails where a token is negative. It shows tokens and their positions at site 4
//            With LAST_LOGITS, it gives those of the last token only. With ADDED, the likeliest token is so many more, with NO_NUMBERS
//            no logit is a number, and VOCABULARY is the number of tokens. With CALLS_KERNEL, logits are made by hone.rms_norm.f32
//   count    how often it was called in this session
//   verify   forward by another name, over the same state. With TREES, of tokens and their ancestors: those that are in the tree before a
//            token count, and its position is the one after theirs
//   draft    forward by another name, over a state of its own

#include "hone/runtime/program.h"

#include "toy_signature.h"

#include <stddef.h>

#ifndef ABI_VERSION
#define ABI_VERSION HONE_PROGRAM_ABI_VERSION
#endif
#ifndef EXTRA_IMPORT
#define EXTRA_IMPORT "hone_rt_free"
#endif

#ifndef VOCABULARY
#define VOCABULARY 8
#endif
#ifndef ADDED
#define ADDED 0
#endif
#ifdef NO_NUMBERS
#define LIKELIEST __builtin_nanf("")
#else
#define LIKELIEST 1.0f
#endif

static void *(*allocate)(uint64_t);
static void *(*output)(hone_call *, int64_t, int64_t, const int64_t *);
static void (*fail)(const char *);
static void (*failWith)(const char *, int64_t, const int64_t *);
static void (*stateAppend)(hone_call *, int64_t, const hone_tensor *, hone_tensor *);
static void (*stateView)(hone_call *, int64_t, hone_tensor *);
static int64_t (*stateLength)(hone_call *);
static int64_t (*stateLag)(hone_call *, int64_t);
static int64_t (*statePadding)(hone_call *, int64_t);
static int64_t (*logitsToKeep)(hone_call *, int64_t);
static void (*observe)(hone_call *, int64_t, const hone_tensor *);
static void (*extra)(void);
#ifdef CALLS_KERNEL
static hone_kernel_fn rmsNorm;
#endif

static void runMain(hone_call *call) {
  const hone_tensor *x = &call->inputs[0], *y = &call->inputs[1];
  const float *offset = (const float *)call->weights;
  int64_t count = x->sizes[0] * 3;
  float *scratch = allocate((uint64_t)count * sizeof(float)); // left to the runtime, also where the call fails
  if (count > 0 && ((float *)x->data)[0] < 0)
    failWith("{}: expected x to begin with a number of at least {}, but got {}", 2,
             (int64_t[]){0, (int64_t)((float *)x->data)[0]});
  for (int64_t i = 0; i < count; ++i)
    scratch[i] = ((float *)x->data)[i] + ((float *)y->data)[i];
  float *sum = output(call, 0, 2, x->sizes);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = scratch[i] + offset[i % 3];
  *(int64_t *)output(call, 1, 0, NULL) = x->sizes[0];
}

/// Whether token `other` of a sequence of a call is token `own` or before it; a chain has no ancestors, and all sequences have one tree unless
/// there are ancestors for each.
static int isBefore(const hone_tensor *ancestors, int64_t sequence, int64_t own, int64_t other) {
  if (!ancestors)
    return other <= own;
  int64_t first = ancestors->rank == 2 ? sequence * ancestors->strides[0] : 0;
  return ((int64_t *)ancestors->data)[first + own] >> other & 1;
}

/// Two numbers a position: the token and its position.
static void appendTokens(hone_call *call, const hone_tensor *tokens, const hone_tensor *ancestors, hone_tensor *all) {
  int64_t batch = tokens->sizes[0], sequence = tokens->sizes[1], length = stateLength(call);
  float *fresh = allocate((uint64_t)(batch * sequence) * 2 * sizeof(float));
  for (int64_t i = 0; i < batch * sequence; ++i) {
    int64_t token = ((int64_t *)tokens->data)[i];
    fresh[2 * i] = (float)token;
    int64_t depth = -1;
    for (int64_t other = 0; other < sequence; ++other)
      depth += isBefore(ancestors, i / sequence, i % sequence, other);
    fresh[2 * i + 1] = (float)(length - stateLag(call, i / sequence) + depth);
  }
  hone_tensor view = {fresh, HONE_F32, 4, {batch, 1, sequence, 2}, {sequence * 2, sequence * 2, 2, 1}};
  observe(call, 4, &view);
  stateAppend(call, 0, &view, all);
  for (int64_t i = 0; i < batch * sequence; ++i)
    if (((int64_t *)tokens->data)[i] < 0)
      fail("expected tokens to be at least 0");
}

static void writeLogits(hone_call *call, const hone_tensor *ancestors) {
  const hone_tensor *tokens = &call->inputs[0];
  int64_t batch = tokens->sizes[0], sequence = tokens->sizes[1], length = stateLength(call);
  hone_tensor before, all;
  stateView(call, 0, &before);
  if (before.sizes[2] != length)
    fail("the view before the append does not have the session's length");
  appendTokens(call, tokens, ancestors, &all);
#ifdef LAST_LOGITS
  int64_t rows = 1;
#else
  int64_t rows = logitsToKeep(call, sequence);
#endif
  int64_t sizes[3] = {batch, rows, VOCABULARY};
  float *logits = output(call, 0, 3, sizes);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r) {
      int64_t sum = 0, own = length - stateLag(call, b);
      for (int64_t p = statePadding(call, b); p < own + sequence; ++p)
        if (p < own || isBefore(ancestors, b, sequence - rows + r, p - own))
          sum += (int64_t)((float *)all.data)[b * all.strides[0] + p * all.strides[2]];
      for (int64_t v = 0; v < VOCABULARY; ++v)
        logits[(b * rows + r) * VOCABULARY + v] = v == (sum + ADDED) % VOCABULARY ? LIKELIEST : 0.0f;
    }
#ifdef CALLS_KERNEL
  hone_tensor view = {logits, HONE_F32, 2, {batch * rows, VOCABULARY}, {VOCABULARY, 1}};
  hone_tensor absent = {NULL, HONE_F32, 0, {0}, {0}}, operands[3] = {view, absent, view};
  int64_t unitOffset = 0;
  double epsilon = 1e-6;
  rmsNorm(call, operands, &unitOffset, &epsilon);
#endif
}

static void runForward(hone_call *call) { writeLogits(call, NULL); }

static void runVerify(hone_call *call) {
#ifdef TREES
  writeLogits(call, &call->inputs[1]);
#else
  writeLogits(call, NULL);
#endif
}

static void runCount(hone_call *call) {
  hone_tensor before, after;
  stateView(call, 0, &before);
  int64_t calls = *(int64_t *)before.data + 1;
  hone_tensor view = {&calls, HONE_I64, 1, {1}, {1}};
  stateAppend(call, 0, &view, &after);
  *(int64_t *)output(call, 0, 0, NULL) = *(int64_t *)after.data;
}

static const hone_import imports[] = {
    {"hone_rt_alloc", (void **)&allocate},
    {"hone_rt_output", (void **)&output},
    {"hone_rt_fail", (void **)&fail},
    {"hone_rt_fail_with", (void **)&failWith},
    {"hone_rt_state_append", (void **)&stateAppend},
    {"hone_rt_state_view", (void **)&stateView},
    {"hone_rt_state_length", (void **)&stateLength},
    {"hone_rt_state_lag", (void **)&stateLag},
    {"hone_rt_state_padding", (void **)&statePadding},
    {"hone_rt_logits_to_keep", (void **)&logitsToKeep},
    {"hone_rt_observe", (void **)&observe},
    {EXTRA_IMPORT, (void **)&extra},
#ifdef CALLS_KERNEL
    {"hone.rms_norm.f32", (void **)&rmsNorm},
#endif
};

static const hone_entry entries[] = {
    {"main", runMain}, {"forward", runForward}, {"count", runCount}, {"verify", runVerify}, {"draft", runForward}};

extern const hone_program hone_program_description __asm__("hone_program");
const hone_program hone_program_description = {
    ABI_VERSION, sizeof imports / sizeof imports[0], imports, sizeof entries / sizeof entries[0], 0, entries,
};
