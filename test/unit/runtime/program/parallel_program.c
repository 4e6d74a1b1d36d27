// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program whose only entry, `main`, doubles x in parallel, in memory that each part allocates. Where x has a number below 0 its part
// fails; where it has one above 1000, its part asks for more memory than there is.

#include "hone/runtime/program.h"

#include "toy_signature.h"

#include <stddef.h>

static void *(*allocate)(uint64_t);
static void (*release)(void *);
static void *(*output)(hone_call *, int64_t, int64_t, const int64_t *);
static void (*fail)(const char *);
static void (*parallel)(hone_body_fn, void *, int64_t, int64_t);

typedef struct {
  const float *x;
  float *doubled;
} Captures;

static void doublePart(void *captures, int64_t begin, int64_t end) {
  const Captures *own = captures;
  float *part = allocate((uint64_t)(end - begin) * sizeof(float));
  for (int64_t i = begin; i < end; ++i) {
    if (own->x[i] < 0)
      fail("expected x to be at least 0");
    if (own->x[i] > 1000)
      allocate((uint64_t)1 << 60);
    part[i - begin] = 2 * own->x[i];
  }
  for (int64_t i = begin; i < end; ++i)
    own->doubled[i] = part[i - begin];
  release(part);
}

static void runMain(hone_call *call) {
  const hone_tensor *x = &call->inputs[0];
  Captures captures = {x->data, output(call, 0, 1, x->sizes)};
  parallel(doublePart, &captures, x->sizes[0], 1000); // each position is worth a thread
}

static const hone_import imports[] = {
    {"hone_rt_alloc", (void **)&allocate},    {"hone_rt_free", (void **)&release},
    {"hone_rt_output", (void **)&output},     {"hone_rt_fail", (void **)&fail},
    {"hone_rt_parallel", (void **)&parallel},
};

static const hone_entry entries[] = {{"main", runMain}};

extern const hone_program hone_program_description __asm__("hone_program");
const hone_program hone_program_description = {
    HONE_PROGRAM_ABI_VERSION,
    sizeof imports / sizeof imports[0],
    imports,
    sizeof entries / sizeof entries[0],
    0,
    entries,
};
