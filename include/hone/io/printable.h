// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text that comes from files, made safe for terminals and logs.

#ifndef HONE_IO_PRINTABLE_H
#define HONE_IO_PRINTABLE_H

#include <string>
#include <string_view>

namespace hone::io {

/// `text` with everything escaped that could forge a line of a log or control a terminal: C0 and C1 control characters as
/// \n, \t, \r or \x1b, bidirectional controls and line separators as \u202e ("Trojan Source", Boucher and Anderson 2021),
/// bytes that are not UTF-8 as \xff. All other characters stay, backslashes too: the result is for reading, not for parsing.
std::string printable(std::string_view text);

/// As `printable`, but line feeds and tabs stay, and so do the bidirectional controls that text in some scripts needs: for
/// what a model writes to a terminal.
std::string printableText(std::string_view text);

} // namespace hone::io

#endif // HONE_IO_PRINTABLE_H
