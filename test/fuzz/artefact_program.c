// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of the artefacts that artefact.cpp loads: y[b, n] = the sum of x[b, column] · value over the outliers of row n, read as
// kernels read them, without a check.

#include "hone/runtime/program.h"
#include "hone/runtime/signature.h"

enum { INPUTS = 8, PANELS = 2, LANES = 16, SLOTS = 4 };
enum { STARTS = 0, COLUMNS = 64, VALUES = 192 }; // places of weights

static void *(*output)(hone_call *, int64_t, int64_t, const int64_t *);

static void runMain(hone_call *call) {
  const hone_tensor *x = &call->inputs[0];
  const int32_t *starts = (const int32_t *)(call->weights + STARTS);
  const uint16_t *columns = (const uint16_t *)(call->weights + COLUMNS);
  const float *values = (const float *)(call->weights + VALUES);
  int64_t sizes[2] = {x->sizes[0], PANELS * LANES};
  float *y = output(call, 0, 2, sizes);
  for (int64_t i = 0; i < sizes[0] * sizes[1]; ++i) {
    int64_t row = i / sizes[1], n = i % sizes[1];
    y[i] = 0;
    for (int64_t slot = starts[n / LANES]; slot < starts[n / LANES + 1]; ++slot) {
      int64_t place = slot * LANES + n % LANES;
      y[i] += ((const float *)x->data)[row * INPUTS + columns[place]] * values[place];
    }
  }
}

static const hone_import imports[] = {{"hone_rt_output", (void **)&output}};
static const hone_entry entries[] = {{"main", runMain}};
static const hone_addresses addresses[] = {
    {STARTS, (PANELS + 1) * sizeof(int32_t), SLOTS, HONE_ADDRESS_STARTS},
    {COLUMNS, SLOTS * LANES * sizeof(uint16_t), INPUTS, HONE_ADDRESS_BELOW},
};

extern const hone_program hone_program_description __asm__("hone_program");
const hone_program hone_program_description = {HONE_PROGRAM_ABI_VERSION, 1, imports, 1, 0, entries};

extern const hone_signature hone_signature_description __asm__("hone_signature");
const hone_signature hone_signature_description = {
    "target \"cpu\"\n"
    "cpu \"sse2\"\n"
    "ranks 1\n"
    "entry \"main\"\n"
    "entry \"main\" input \"x\": f32 [\"batch\", 8]\n"
    "entry \"main\" output \"y\": f32 [\"batch\", 32]\n"
    "end of entries\n"
    "weight \"w.starts\": I32 [3] at 0\n"
    "weight \"w.columns\": U16 [4, 16] at 64\n"
    "weight \"w.outliers\": F32 [4, 16] at 192\n"
    "end of weights\n",
    sizeof addresses / sizeof addresses[0],
    addresses,
};
