// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C interface's handles point to, and the way from absl::Status to hone_status.

#ifndef HONE_RUNTIME_C_API_HANDLES_H
#define HONE_RUNTIME_C_API_HANDLES_H

#include "core/module.h"
#include "generate/model_drafter.h"
#include "generate/speculation.h"
#include "hone/runtime/hone.h"
#include "hone/text/tokenizer.h"

#include <cstring>

/// Shared, so that DLPack tensors may outlive the handle.
struct hone_outputs_contents {
  std::vector<std::string> names;
  std::vector<hone::io::Array> arrays;
};

struct hone_module {
  std::shared_ptr<const hone::rt::Module> module;
  std::shared_ptr<const hone::text::Tokenizer> tokenizer; // null where the artefact has none
};

struct hone_outputs {
  std::shared_ptr<const hone_outputs_contents> contents;
};

struct hone_session {
  std::unique_ptr<hone::rt::Session> session;
  std::shared_ptr<const hone::text::Tokenizer> tokenizer;
};

struct hone_checkpoint {
  std::shared_ptr<const hone::rt::Checkpoint> point;
};

struct hone_speculation {
  std::shared_ptr<const hone::rt::Module> module; // of its sessions
  std::string entry;
  hone::rt::DraftModel draft; // open where one drafts
  std::unique_ptr<hone::rt::Speculation> drafts;
};

namespace hone::capi {

/// Keeps the message for hone_last_error().
hone_status report(const absl::Status &status) noexcept;

/// Fails for a number of threads that no call can have; 0 is as OpenMP decides.
absl::Status checkThreads(int32_t threads);

/// HONE_INVALID for an argument that must not be null.
hone_status reportNull(const char *argument);

/// Runs the body of a function of the interface, which returns an absl::Status. What it throws is reported as well: hosts may be
/// compiled without exceptions, or in C.
template <typename Body> hone_status reported(Body body) noexcept {
  try {
    return report(body());
  } catch (...) {
    return report(io::statusOfException());
  }
}

/// The members of a caller's struct that it has, over defaults; fails for a struct_size that is none.
template <typename Options>
absl::Status takeOptions(const Options *given, Options &options) {
  if (!given)
    return absl::OkStatus();
  if (given->struct_size < sizeof(size_t))
    return io::invalid("expected struct_size to be the size of the struct, but got ", given->struct_size);
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  return absl::OkStatus();
}

/// Inputs by name, checked for null names.
absl::StatusOr<std::vector<rt::NamedTensor>> takeInputs(const hone_named_tensor *inputs, size_t count);

/// The handle of a call's results, made before the call: afterwards a session has advanced, and nothing may fail.
class PendingOutputs {
public:
  explicit PendingOutputs(const io::EntryInfo &entry);
  hone_outputs *release(std::vector<io::Array> arrays) noexcept;

private:
  std::shared_ptr<hone_outputs_contents> contents;
  std::unique_ptr<hone_outputs> outputs;
};

} // namespace hone::capi

#endif // HONE_RUNTIME_C_API_HANDLES_H
