# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lsp_session.py SERVER FILE.mlir: what an editor says to a language server when it opens a file, points at the first
`%norm` and closes again. Prints what the server answered, one line an answer."""

import json
import pathlib
import subprocess
import sys


class Session:
    def __init__(self, command):
        self.server = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.next_id = 0

    def send(self, method, params, **fields):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **fields}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self):
        length = None
        while line := self.server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length is None:
            sys.exit("the server closed the connection")
        return json.loads(self.server.stdout.read(length))

    def notification(self, method):
        while (message := self.receive()).get("method") != method:
            pass
        return message["params"]

    def request(self, method, params):
        """The result, or the message of an error."""
        self.next_id += 1
        self.send(method, params, id=self.next_id)
        while (message := self.receive()).get("id") != self.next_id:
            pass
        return message["result"] if "result" in message else message["error"]["message"]

    def initialize(self):
        result = self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.send("initialized", {})
        return result["capabilities"]

    def end(self):
        print("shutdown:", self.request("shutdown", None))
        self.send("exit", None)
        print("exit code:", self.server.wait(timeout=60))


def position_of(text, word):
    before = text[: text.index(word)]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def main():
    command, path = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    text, uri = path.read_text(), path.as_uri()
    session = Session(command)

    print("capabilities:", " ".join(sorted(name for name, value in session.initialize().items() if value)))

    document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
    session.send("textDocument/didOpen", {"textDocument": document})
    for diagnostic in session.notification("textDocument/publishDiagnostics")["diagnostics"]:
        print(f"diagnostic: line {diagnostic['range']['start']['line'] + 1}: {diagnostic['message']}")

    hover = session.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position_of(text, "%norm")})
    print("hover:", " ".join(hover["contents"]["value"].split()) if hover else "nothing")

    session.end()


if __name__ == "__main__":
    main()
