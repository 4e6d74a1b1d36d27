# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lsp_nesting.py SERVER: opens files that are nested too deeply for a parser, changes them to one that is not and back, and asks for one as
bytecode. Prints what the server says of each."""

import pathlib
import sys

from lsp_session import Session

DEPTH = 100_000
GOOD = "func.func @good() {\n  return\n}\n"
BAD = {
    "modules": '"builtin.module"() ({' * DEPTH,
    "types": "module attributes {a = " + "tuple<" * DEPTH + "}",
    "second part": GOOD + "// -----\n" + "[" * DEPTH,
    "doubling aliases": "!a0 = i32\n" + "".join(f"!a{i + 1} = tuple<!a{i}, !a{i}>\n" for i in range(40)),
}


class Document:
    def __init__(self, session, name, text):
        self.session, self.version = session, 1
        self.path = pathlib.Path(name.replace(" ", "-") + ".mlir").resolve()
        self.uri = self.path.as_uri()
        session.send("textDocument/didOpen",
                     {"textDocument": {"uri": self.uri, "languageId": "mlir", "version": self.version, "text": text}})

    def change(self, text):
        self.version += 1
        self.session.send("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version},
                                                     "contentChanges": [{"text": text}]})

    def diagnostics(self, count):
        """Those of so many publications, the last of which an editor shows."""
        while count:
            published = self.session.notification("textDocument/publishDiagnostics")
            count -= published["uri"] == self.uri and published["version"] == self.version
        return [diagnostic["message"] for diagnostic in published["diagnostics"]]

    def symbols(self):
        return self.session.request("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}})


def main():
    session = Session(sys.argv[1])
    session.initialize()
    for name, text in BAD.items():
        document = Document(session, name, text)
        # The server's, of an empty document, and why it is that, once another message comes.
        session.send("textDocument/documentSymbol", {"textDocument": {"uri": document.uri}}, id=0)
        print(f"{name}:", document.diagnostics(2))
        document.change(GOOD)
        print("changed:", document.diagnostics(1), [symbol["name"] for symbol in document.symbols()])
        document.change(text)
        document.path.write_text(text)
        print("bytecode:", session.request("mlir/convertFromBytecode", {"uri": document.uri}))
        session.send("textDocument/didClose", {"textDocument": {"uri": document.uri}})
    session.end()


main()
