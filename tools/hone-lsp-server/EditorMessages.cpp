// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server answers a message before it reads the next, so that what is said in between follows its answer.

#include "EditorMessages.h"

#include "hone/Import/ModuleText.h"

#include "mlir/Support/ToolUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstring>

using llvm::StringRef;

namespace json = llvm::json;
namespace lsp = llvm::lsp;

namespace hone {

/// What an editor shows at the first character of `document`.
static json::Object describeProblem(const json::Object &document, StringRef problem) {
  auto start = [] { return json::Object{{"line", 0}, {"character", 0}}; };
  json::Object diagnostic{{"range", json::Object{{"start", start()}, {"end", start()}}},
                          {"severity", static_cast<int>(lsp::DiagnosticSeverity::Error)},
                          {"source", "mlir"},
                          {"message", "cannot read this file: " + problem.str()}};
  json::Object published{{"diagnostics", json::Array{std::move(diagnostic)}}};
  for (StringRef member : {"uri", "version"})
    if (const json::Value *value = document.get(member))
      published[member] = *value;
  return published;
}

/// Replaces the text in `holder`, of `document`, where it is not for the parser.
void EditorMessages::checkText(json::Object &holder, const json::Object &document) {
  std::string problem = checkModuleTexts(holder.getString("text").value_or(""), mlir::kDefaultSplitMarker);
  if (problem.empty())
    return;
  diagnostics.push_back(describeProblem(document, problem));
  holder["text"] = "";
  isChanged = true;
}

/// Of a request to read a file that is bytecode, or text: whether it was answered here.
bool EditorMessages::answerRequest(const json::Object &request, const json::Object &parameters) {
  const json::Value *id = request.get("id");
  llvm::Expected<lsp::URIForFile> uri = lsp::URIForFile::fromURI(parameters.getString("uri").value_or(""));
  if (!id || !uri) {
    llvm::consumeError(uri.takeError());
    return false;
  }
  auto file = llvm::MemoryBuffer::getFile(uri->file());
  if (!file || (*file)->getBuffer().starts_with("ML\xEFR")) // the server says what cannot be opened
    return false;
  std::string problem = checkModuleText((*file)->getBuffer());
  if (problem.empty())
    return false;
  output.reply(*id, llvm::make_error<lsp::LSPError>("cannot read '" + uri->file().str() + "': " + problem,
                                                    lsp::ErrorCode::RequestFailed));
  return true;
}

/// Whether the server gets the message, which may be another then.
bool EditorMessages::check(json::Object &content) {
  StringRef method = content.getString("method").value_or("");
  json::Object *parameters = content.getObject("params");
  if (!parameters)
    return true;
  if (method == "mlir/convertFromBytecode")
    return !answerRequest(content, *parameters);
  json::Object *document = parameters->getObject("textDocument");
  if (document && method == "textDocument/didOpen")
    checkText(*document, *document);
  json::Array *changes = parameters->getArray("contentChanges");
  if (document && changes && method == "textDocument/didChange")
    for (json::Value &change : *changes)
      if (json::Object *holder = change.getAsObject())
        checkText(*holder, *document);
  return true;
}

bool EditorMessages::takeNext() {
  for (json::Object &problem : diagnostics)
    output.notify("textDocument/publishDiagnostics", std::move(problem));
  diagnostics.clear();
  while (!input.isEndOfInput() && !input.hasError()) {
    std::string text;
    if (failed(input.readMessage(text)))
      continue;
    isChanged = false;
    llvm::Expected<json::Value> content = json::parse(text);
    if (!content)
      llvm::consumeError(content.takeError()); // the server says so
    else if (json::Object *object = content->getAsObject(); object && !check(*object))
      continue;
    if (isChanged)
      text = llvm::formatv("{0}", *content).str();
    message = "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    taken = 0;
    return true;
  }
  return false;
}

size_t EditorMessages::read(char *to, size_t size) {
  if (taken == message.size() && !takeNext())
    return 0;
  size_t count = std::min(size, message.size() - taken);
  std::memcpy(to, message.data() + taken, count);
  taken += count;
  return count;
}

} // namespace hone
