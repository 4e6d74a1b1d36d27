// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a new artefact may take the place of.

#ifndef HONE_LIB_ARTEFACT_FORMERARTEFACT_H
#define HONE_LIB_ARTEFACT_FORMERARTEFACT_H

#include "hone/io/output.h"

namespace hone {

/// Whether all that is at `path` is an artefact: a folder with a manifest of ours and the files that it lists. Fails, naming `shown`, for
/// anything else, for a folder with another file in it, and for one with a file that is among the `inputs`.
absl::Status checkFormerArtefact(const std::string &shown, const std::string &path, const io::InputFiles &inputs);

} // namespace hone

#endif // HONE_LIB_ARTEFACT_FORMERARTEFACT_H
