// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last error of a thread, and what calls take and give.

#include "c_api/handles.h"

#include "hone/runtime/limits.h"

namespace hone::capi {
namespace {

struct LastError {
  std::string text;
  bool isKept = true; // or there was no memory for the text
};

thread_local LastError lastError;

hone_status statusOf(absl::StatusCode code) {
  switch (code) {
  case absl::StatusCode::kInternal:
    return HONE_INTERNAL;
  case absl::StatusCode::kResourceExhausted:
    return HONE_OUT_OF_MEMORY;
  default:
    return HONE_INVALID;
  }
}

} // namespace

hone_status report(const absl::Status &status) noexcept {
  if (status.ok())
    return HONE_OK;
  try {
    lastError.text = io::messageOf(status);
    lastError.isKept = true;
    return statusOf(status.code());
  } catch (...) {
    lastError.isKept = false;
    return HONE_OUT_OF_MEMORY;
  }
}

hone_status reportNull(const char *argument) {
  return reported([=] { return io::invalid("expected ", argument, " not to be null"); });
}

absl::Status checkThreads(int32_t threads) {
  if (threads < 0 || threads > rt::kMostThreads)
    return io::invalid("expected threads to be 0 to ", rt::kMostThreads, ", but got ", threads);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<rt::NamedTensor>> takeInputs(const hone_named_tensor *inputs, size_t count) {
  std::vector<rt::NamedTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    if (!inputs || !inputs[i].name)
      return io::invalid("expected input ", i, " to have a name");
    tensors.push_back({inputs[i].name, inputs[i].tensor});
  }
  return tensors;
}

PendingOutputs::PendingOutputs(const io::EntryInfo &entry)
    : contents(std::make_shared<hone_outputs_contents>()), outputs(new hone_outputs{contents}) {
  for (const io::TensorInfo &info : entry.outputs)
    contents->names.push_back(info.name);
}

hone_outputs *PendingOutputs::release(std::vector<io::Array> arrays) noexcept {
  contents->arrays = std::move(arrays);
  return outputs.release();
}

} // namespace hone::capi

const char *hone_last_error(void) {
  return hone::capi::lastError.isKept ? hone::capi::lastError.text.c_str() : "out of memory";
}
