//===- device.h - what a program for a device and the runtime say to each other -------------------------------*- C -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of an artefact whose tensors lie in a device's memory imports these services besides those of program.h. Its host
// code computes sizes and enqueues work on the stream of its call; it never touches device memory, and kernels never touch
// the host's.
//
//===--------------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_RUNTIME_DEVICE_H
#define HONE_RUNTIME_DEVICE_H

#include "hone/runtime/program.h"

/// Version of the services below; the manifest of a program for a device has it as `device.services`.
#define HONE_DEVICE_SERVICES_VERSION 2

/// Where tensors of services and kernels are:
///   hone_call.inputs, hone_rt_alloc, hone_rt_arena, hone_rt_output, scalars    the host's memory
///   hone_rt_state_append, hone_rt_state_view, hone_rt_state_update    `fresh` and `all` are in device memory, in rows; `fresh` may have any strides
///   hone_rt_observe    `values` in device memory
///   kernels            operands' elements in device memory; names begin with "cuda."; they enqueue on the call's stream
///
/// Everything enqueued in a call runs in the order in which it was enqueued. Device memory is aligned to 256 bytes and
/// uninitialised. Services (C signatures):
///   const uint8_t *hone_rt_device_weights(hone_call *)
///                                                  first byte of the tensor data of weights.safetensors, on the device
///   void *hone_rt_device_input(hone_call *, int64_t index)
///                                                  input `index`, dense row-major, on the device. The program does not write it
///   void *hone_rt_device_output(hone_call *, int64_t index, int64_t rank, const int64_t *sizes)
///                                                  device memory for output `index`, dense row-major, which the caller gets
///                                                  when the entry has returned. Each output is made once in a call, by this or
///                                                  by hone_rt_output
///   void hone_rt_device_arena(hone_call *, int64_t count, const uint64_t *bytes, void **slots)
///                                                  writes `count` pointers to device memory to `slots`: so many bytes each,
///                                                  disjoint, until the call ends. At most once in a call
///   void *hone_rt_device_alloc(hone_call *, uint64_t bytes)
///                                                  device memory until the call ends at the latest; never null
///   void hone_rt_device_free(hone_call *, void *)  for what is enqueued later; null is nothing
///   void hone_rt_launch(hone_call *, int64_t kernel, const int64_t *shape, void **arguments)
///                                                  enqueues kernel number `kernel` of the manifest. `shape`: blocks of the grid
///                                                  along x, y, z, threads of a block along x, y, z, and bytes of dynamic shared
///                                                  memory. `arguments` point at one value for each parameter, which is copied.
///                                                  Nothing happens where a number of blocks is 0
///   void hone_rt_device_copy(hone_call *, void *to, const void *from, uint64_t bytes)
///                                                  enqueues a copy from device memory to device memory; they do not overlap
///   void hone_rt_upload(hone_call *, void *device, const void *host, uint64_t bytes)
///                                                  enqueues a copy of what `host` holds now
///   void hone_rt_fetch(hone_call *, void *host, const void *device, uint64_t bytes)
///                                                  waits for all that was enqueued, and copies
///   void hone_rt_state_extend(hone_call *, int64_t slot, int64_t rank, const int64_t *sizes, hone_tensor *fresh)
///                                                  extends a slot along its axis as hone_rt_state_append does by a tensor of
///                                                  these sizes, but copies nothing: `fresh` views the new positions, in the
///                                                  slot's elements, which the program writes
/// Services that fail end the call as hone_rt_fail does. So does a kernel's fault, which shows at the next wait.

#endif // HONE_RUNTIME_DEVICE_H
