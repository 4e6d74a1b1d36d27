// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an editor says to the server. The server parses every text that it is sent, by recursion.

#ifndef HONE_TOOLS_HONE_LSP_SERVER_EDITORMESSAGES_H
#define HONE_TOOLS_HONE_LSP_SERVER_EDITORMESSAGES_H

#include "llvm/Support/LSP/Transport.h"

#include <cstdio>
#include <string>
#include <vector>

namespace hone {

/// The messages of the language server protocol from an editor, without texts that are not for MLIR's parser (ModuleText.h): the server
/// gets an empty document instead, and the editor a diagnostic.
class EditorMessages {
public:
  explicit EditorMessages(std::FILE *editor) : input(editor), output(editor, llvm::outs()) {}

  /// Up to `size` bytes of a message, or of the next where the last was read to its end, which is when the server is done with it; 0 where
  /// there is none.
  size_t read(char *to, size_t size);

private:
  bool takeNext();
  bool check(llvm::json::Object &message);
  void checkText(llvm::json::Object &holder, const llvm::json::Object &document);
  bool answerRequest(const llvm::json::Object &message, const llvm::json::Object &parameters);

  llvm::lsp::JSONTransportInputOverFile input;
  llvm::lsp::JSONTransport output;
  std::string message;
  size_t taken = 0;                            // bytes of the message
  bool isChanged = false;                      // the message, by a check
  std::vector<llvm::json::Object> diagnostics; // to be published once the server has published its own
};

} // namespace hone

#endif // HONE_TOOLS_HONE_LSP_SERVER_EDITORMESSAGES_H
