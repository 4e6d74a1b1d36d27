// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of device_program.c, a thread for each element.

#define KERNEL extern "C" __attribute__((global)) void

static __attribute__((device)) long long thread() {
  return static_cast<long long>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

/// out[i] = a[i] + b[i mod period]
KERNEL toy_add(float *out, const float *a, const float *b, long long count, long long period) {
  long long i = thread();
  if (i < count)
    out[i] = a[i] + b[i % period];
}

/// Two numbers a position: the token and its position.
KERNEL toy_rows(float *fresh, const long long *tokens, long long count, long long length, long long sequence) {
  long long i = thread();
  if (i >= count)
    return;
  fresh[2 * i] = static_cast<float>(tokens[i]);
  fresh[2 * i + 1] = static_cast<float>(length + i % sequence);
}

/// Logits of row r of sequence b: 1 for the sum of its tokens up to position first + r, padding left out, modulo the vocabulary.
KERNEL toy_logits(float *logits, const float *all, const long long *padding, long long batchStride,
                  long long positionStride, long long count, long long rows, long long first, long long vocabulary) {
  long long i = thread();
  if (i >= count)
    return;
  long long b = i / rows, sum = 0;
  for (long long p = padding[b]; p <= first + i % rows; ++p)
    sum += static_cast<long long>(all[b * batchStride + p * positionStride]);
  for (long long v = 0; v < vocabulary; ++v)
    logits[i * vocabulary + v] = v == sum % vocabulary ? 1.0f : 0.0f;
}

KERNEL toy_count(long long *after, const long long *before) { *after = *before + 1; }

/// Writes where there is nothing.
KERNEL toy_fault() { *reinterpret_cast<volatile int *>(64) = 1; }
