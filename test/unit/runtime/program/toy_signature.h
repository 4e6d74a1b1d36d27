// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The signature of a toy program. Tests write it into a copy of the program, after the mark (support.h), so that one program
// serves several manifests.

#include "hone/runtime/signature.h"

static const struct {
  char mark[32], text[8192];
} place = {"HONE TEST SIGNATURE BEGINS HERE", ""};

extern const hone_signature hone_signature_description __asm__("hone_signature");
const hone_signature hone_signature_description = {place.text, 0, 0};
