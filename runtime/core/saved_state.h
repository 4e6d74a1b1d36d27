// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session's state as a file, from which others begin.

#ifndef HONE_RUNTIME_CORE_SAVED_STATE_H
#define HONE_RUNTIME_CORE_SAVED_STATE_H

#include "core/module.h"

namespace hone::rt {

/// Fails where saveState would, whatever the session holds: before work that would be lost.
absl::Status checkSavable(const std::string &path, const Session &session);

/// Writes the state of a session, in the host's memory, after the tokens of one text, all of which it has. The file appears when it is whole. It
/// is a safetensors file with the metadata `format` "hone state", `version` "1", `model` (modelOf), `crc32` of what is used, and for each
/// size that the slots take from calls `size.NAME`; its tensors are `tokens`, i64 [n], and `state.SLOT` for each slot as its memory has
/// it, which begins at a multiple of 64 bytes and has room for some more positions. What calls appended and later ones dropped leaves no
/// trace in it.
absl::Status saveState(const std::string &path, Session &session, std::span<const int64_t> tokens);

/// The session becomes one that has the text which a saved state is after, at least one token; returns the text. It maps the file privately: sessions
/// share its pages until one of them writes there. Fails, with the session at its beginning, unless the file is whole and of this session's
/// model and entry.
absl::StatusOr<std::vector<int64_t>> restoreState(const std::string &path, Session &session);

/// What tells a model: the CRC-32 of its manifest, of the table of its weights and of the first bytes of each of them, as text.
absl::StatusOr<std::string> modelOf(const Module &module);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_SAVED_STATE_H
