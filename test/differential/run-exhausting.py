# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small files that claim much: the compiler says in a line that it does not take them, or does its work, in 4 GB of memory.

Models and IR whose shapes, constants, functions, subgraphs or brackets are far more than their bytes, and chains of many nodes, which
are compiled. Nothing is left behind where a file is refused.
"""

import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import suite

TIMEOUT_SECONDS = 240
MEMORY_BYTES = 4 << 30
DEEP = 100_000

# ONNX


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def initializer(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def model(nodes, initializers=(), functions=(), outputs=None, inputs=None, sparse=()):
    graph = helper.make_graph(nodes, "g", inputs or [value("x", ["n"])], outputs or [value("y", ["m"])], list(initializers),
                              sparse_initializer=list(sparse))
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9).SerializeToString()


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs, outputs, **attributes)


def filled(sizes, dtype=np.float32):
    """A tensor of these sizes that is one number, then something that libonnx propagates values through."""
    constant = numpy_helper.from_array(np.array([1], dtype))
    return model([node("ConstantOfShape", ["s"], ["c"], value=constant), node("Add", ["c", "c"], ["y"])],
                 [initializer("s", sizes)],
                 outputs=[value("y", [None] * len(sizes), helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))])


def tiled(times):
    return model([node("Tile", ["x1", "r"], ["t"]), node("Add", ["t", "t"], ["y"])],
                 [initializer("x1", [1], np.float32), initializer("r", [times])])


def reshaped_by(count):
    """A shape of so many sizes."""
    one = numpy_helper.from_array(np.array([1], np.int64))
    return model([node("ConstantOfShape", ["s"], ["c"], value=one), node("Reshape", ["x", "c"], ["y"])], [initializer("s", [count])])


def sparse(size, count):
    tensors = [helper.make_sparse_tensor(initializer(f"w{i}", [1], np.float32), initializer("", [0]), [size]) for i in range(count)]
    nodes = [node("Add", [f"w{i}", f"w{i}"], [f"y{i}"]) for i in range(count)]
    return model(nodes, outputs=[value(f"y{i}", ["m"]) for i in range(count)], sparse=tensors)


def calling(depth):
    """Functions of which each calls the one before twice."""
    functions = [helper.make_function("f", "F0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 18)])]
    for i in range(1, depth):
        calls = [node(f"F{i - 1}", ["a"], ["m"], domain="f"), node(f"F{i - 1}", ["m"], ["b"], domain="f")]
        functions.append(helper.make_function("f", f"F{i}", ["a"], ["b"], calls, [helper.make_opsetid("f", 1)]))
    return model([node(f"F{depth - 1}", ["x"], ["y"], domain="f")], functions=functions, outputs=[value("y", ["n"])])


def doubled(times, dtype):
    """A constant that is put after itself again and again."""
    nodes = [node("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], axis=0) for i in range(times)]
    sum_ = node("ReduceSum", [f"t{times}"], ["y"])
    tensor = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model([*nodes, sum_], [initializer("t0", [1, 2], dtype)], outputs=[value("y", [1], tensor)])


def doubled_tiles(times):
    nodes = [node("Tile", [f"t{i}", "two"], [f"t{i + 1}"]) for i in range(times)]
    return model([*nodes, node("ReduceSum", [f"t{times}"], ["y"])], [initializer("t0", [1, 2]), initializer("two", [2])],
                 outputs=[value("y", [1], TensorProto.INT64)])


def squared(times):
    nodes = [node("MatMul", [f"t{i}", f"t{i}"], [f"t{i + 1}"]) for i in range(times)]
    return model([*nodes, node("Add", ["x", f"t{times}"], ["y"])], [initializer("t0", np.eye(4), np.float32)],
                 inputs=[value("x", [4, 4])], outputs=[value("y", [4, 4])])


def chain(operator, count):
    nodes = [node(operator, [f"v{i}"] * (2 if operator == "Add" else 1), [f"v{i + 1}"]) for i in range(count)]
    return model(nodes, inputs=[value("v0", ["n"])], outputs=[value(f"v{count}", ["n"])])


def ladder(count):
    """Each node reads the two before."""
    nodes = [node("Add", [f"v{i}", f"v{i + 1}"], [f"v{i + 2}"]) for i in range(count)]
    return model(nodes, inputs=[value("v0", ["n"]), value("v1", ["n"])], outputs=[value(f"v{count + 1}", ["n"])])


def empty_messages(count, field):
    """A model whose graph has so many messages of two bytes."""
    body = bytes([field << 3 | 2, 0]) * count
    length, size = [], len(body)
    while size:
        length.append(size & 127 | (128 if size > 127 else 0))
        size >>= 7
    return b"\x08\x09\x3a" + bytes(length) + body


def nested(depth):
    body = helper.make_graph([node("Relu", ["x"], ["r"])], "b", [], [value("r", ["n"])])
    for i in range(depth):
        inner = node("If", ["c"], [f"r{i}"], then_branch=body, else_branch=body if i == 0 else helper.make_graph(
            [node("Relu", ["x"], [f"e{i}"])], "e", [], [value(f"e{i}", ["n"])]))
        body = helper.make_graph([inner], "b", [], [value(f"r{i}", ["n"])])
    graph = helper.make_graph(list(body.node), "g", [value("x", ["n"]), value("c", [], TensorProto.BOOL)], list(body.output))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def of_rank(rank):
    return model([node("Relu", ["x"], ["y"])], inputs=[value("x", [1] * rank)], outputs=[value("y", [1] * rank)])


def unsqueezed(rank):
    return model([node("Unsqueeze", ["x", "a"], ["y"])], [initializer("a", list(range(rank)))],
                 outputs=[value("y", [None] * (rank + 1))])


MODELS = {
    "constant of 10^12": filled([10**12]),
    "constant of 2^62": filled([2**31, 2**31]),
    "integers, 10^12": filled([10**12], np.int64),
    "tile of 10^11": tiled(10**11),
    "shape of 10^12": reshaped_by(10**12),
    "sparse of 2^29": sparse(2**29 - 1, 1),
    "eight sparse of 2^26": sparse(2**26, 8),
    "functions of 2^39 nodes": calling(40),
    "functions of 2^999 nodes": calling(1000),
    "doubled floats": doubled(45, np.float32),
    "doubled integers": doubled(45, np.int64),
    "doubled tiles": doubled_tiles(45),
    "squared constant": squared(60),
    "4,000,000 nodes": empty_messages(4_000_000, 1),
    "4,000,000 initializers": empty_messages(4_000_000, 5),
    "4,000,000 types": empty_messages(4_000_000, 13),
    "nested subgraphs": nested(25),
    "rank 100,000": of_rank(DEEP),
    "rank 1,000": unsqueezed(1000),
}
CHAINS = {"chain of Relu": chain("Relu", 5000), "chain of Add": chain("Add", 5000), "ladder": ladder(2000)}

# IR

FUNCTION = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"


def aliased(kind, first, pattern, count):
    lines = [f"{kind}a0 = {first}"] + [f"{kind}a{i + 1} = {pattern.format(f'{kind}a{i}')}" for i in range(count)]
    return "\n".join(lines) + f"\nmodule attributes {{tensor.t = {kind}a{count}}} {{\n{FUNCTION}}}\n"


def attribute(text):
    return f"module attributes {{tensor.t = {text}}} {{\n{FUNCTION}}}\n"


TYPES = {
    "tuples": "tuple<" * DEEP + "i1" + ">" * DEEP,
    "functions": "(" * DEEP + ") -> ()" * DEEP,
    "results of functions": "() -> (" * DEEP + ")" * DEEP,
    "dimensions": "tensor<" + "1x" * DEEP + "f32>",
    "blank dimensions": "tensor<" + "1 x " * DEEP + "f32>",
    "complex": "complex<" * DEEP + "f32" + ">" * DEEP,
}
IR = {
    "arrays": attribute("[" * DEEP + "]" * DEEP),
    "dictionaries": attribute("{a=" * DEEP + "1" + "}" * DEEP),
    "affine parentheses": attribute("affine_map<(d0) -> (" + "(" * DEEP + "d0" + ")" * DEEP + ")>"),
    "affine sum": attribute("affine_map<(d0) -> (d0" + " + d0" * DEEP + ")>"),
    "affine remainders": attribute("affine_map<(d0) -> (d0" + " mod 7" * DEEP + ")>"),
    "affine signs": attribute("affine_map<(d0) -> (" + "- " * DEEP + "d0)>"),
    "affine comparison": attribute("affine_set<(d0) : (" + "(" * DEEP + "d0" + ")" * DEEP + " >= 0)>"),
    "locations": FUNCTION + "module {} loc(" + 'callsite("a" at ' * DEEP + '"b"' + ")" * DEEP + ")\n",
    "modules": "module {" * (DEEP // 5) + "}" * (DEEP // 5),
    "generic modules": '"builtin.module"() ({' * (DEEP // 5) + "}) : () -> ()" * (DEEP // 5),
    "doubling types": aliased("!", "i32", "tuple<{0}, {0}>", 40),
    "doubling attributes": aliased("#", "1 : i32", "[{0}, {0}]", 40),
    "chained types": aliased("!", "i32", "tuple<{0}>", DEEP),
    "chained attributes": aliased("#", "1 : i32", "[{0}]", DEEP),
    "chained locations": aliased("#", 'loc("a")', 'loc(callsite("b" at {0}))', DEEP),
    "splat parameter": "hone.param @w : tensor<100000000000xf32> = dense<1.0> : tensor<100000000000xf32>\n"
                       "func.func @main() -> tensor<100000000000xf32> {\n"
                       "  %w = hone.get_param @w : tensor<100000000000xf32>\n  return %w : tensor<100000000000xf32>\n}\n",
    "splat constant": "func.func @main() -> tensor<100000000000xf32> {\n"
                      "  %c = arith.constant dense<1.0> : tensor<100000000000xf32>\n  return %c : tensor<100000000000xf32>\n}\n",
    **{name: attribute(text) for name, text in TYPES.items()},
}


class Bench:
    def __init__(self, tools):
        self.tools = tools
        # An address sanitizer takes terabytes of addresses.
        self.is_limited = subprocess.run([tools / "hone", "--version"], capture_output=True, preexec_fn=self.limit).returncode == 0

    @staticmethod
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    def run(self, folder, command):
        command = [self.tools / command[0], *command[1:]]
        try:
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS,
                                  preexec_fn=self.limit if self.is_limited else None)
        except subprocess.TimeoutExpired:
            raise suite.Failure(f"did not end in {TIMEOUT_SECONDS} s") from None

    def check(self, name, content, command, may):
        """`may` has the exit codes that are right."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
            result = self.run(folder, command)
            said = [line for line in result.stderr.splitlines() if line]
            if result.returncode not in may:
                raise suite.Failure(f"expected exit {may}, but got {result.returncode}: {suite.one_line(result.stderr)}")
            if result.returncode and (not said or "PLEASE" in result.stderr or "LLVM ERROR" in result.stderr):
                raise suite.Failure(f"expected a sentence, but got {suite.one_line(result.stderr)}")
            left = {path.name for path in folder.iterdir()} - {name, "out"}
            if left or (result.returncode and (folder / "out").exists()):
                raise suite.Failure(f"left {left or 'its output'} behind")


def artefact_case(bench):
    """Types in the metadata of weights, which `inspect --masks` parses."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.onnx").write_bytes(model([node("MatMul", ["x", "w"], ["y"])], [initializer("w", np.ones((64, 64)), np.float32)],
                                              inputs=[value("x", ["n", 64])], outputs=[value("y", ["n", 64])]))
        suite.run_tool([bench.tools / "hone", "compile", folder / "m.onnx", "-o", folder / "m.hone", "--quiet"])
        weights = folder / "m.hone" / "weights.safetensors"
        whole = weights.read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = whole[8:8 + size].decode()
        begin = header.index('"', header.index("type of ") + len("type of w") + 1)
        for name, text in TYPES.items():
            changed = (header[:begin + 1] + text + header[header.index('"', begin + 1):]).encode()
            weights.write_bytes(len(changed).to_bytes(8, "little") + changed + whole[8 + size:])
            result = bench.run(folder, ["hone", "inspect", "m.hone", "--masks"])
            if result.returncode != 1 or "type of" not in result.stderr:
                raise suite.Failure(f"{name}: exit {result.returncode}: {suite.one_line(result.stderr)}")


def untrusted_cases():
    yield "untrusted model", ("m.onnx", chain("Relu", 3), ["hone", "compile", "m.onnx", "--untrusted", "--quiet", "-o", "out"], [0])
    yield "untrusted IR", ("m.mlir", FUNCTION, ["hone", "compile", "m.mlir", "--untrusted", "-o", "out"], [1])
    yield "memory limit", ("m.onnx", chain("Add", 20000), ["hone", "import", "m.onnx", "--memory-limit=30000000", "-o", "out"], [1])
    yield "time limit", ("m.onnx", chain("Add", 20000), ["hone", "compile", "m.onnx", "--time-limit=1", "-o", "out"], [1])
    yield "node limit", ("m.onnx", chain("Relu", 5), ["hone", "compile", "m.onnx", "--max-nodes=4", "-o", "out"], [1])
    yield "larger node limit", ("m.onnx", chain("Relu", 5), ["hone", "compile", "m.onnx", "--max-nodes=5", "--quiet", "-o", "out"], [0])
    yield "larger expansion", ("m.onnx", sparse(2**18, 1),
                               ["hone", "compile", "m.onnx", "--max-expanded-bytes=1048576", "--quiet", "-o", "out"], [0])
    yield "smaller expansion", ("m.onnx", sparse(2**18, 1),
                                ["hone", "compile", "m.onnx", "--max-expanded-bytes=1048575", "--quiet", "-o", "out"], [1])


def all_cases():
    for name, content in MODELS.items():
        for command in ("import", "inspect", "compile"):
            output = [] if command == "inspect" else ["-o", "out"]
            yield f"{command} {name}", ("m.onnx", content, ["hone", command, "m.onnx", *output], [0, 1])
    for name, content in CHAINS.items():
        yield f"compile {name}", ("m.onnx", content, ["hone", "compile", "m.onnx", "--quiet", "-o", "out"], [0])
    for name, text in IR.items():
        yield f"compile {name}", ("m.mlir", text, ["hone", "compile", "m.mlir", "-o", "out"], [1])
        if not name.startswith("splat"):
            yield f"hone-opt {name}", ("m.mlir", text, ["hone-opt", "m.mlir", "-o", "out"], [1])
    yield from untrusted_cases()


def main():
    options = suite.parser(__doc__).parse_args()
    bench = Bench(options.build.resolve() / "bin")
    cases = [(name, lambda case=case: bench.check(*case)) for name, case in all_cases()]
    cases.append(("inspect types in metadata", lambda: artefact_case(bench)))
    return suite.run_all([(name, case) for name, case in cases if options.only in name], lambda case: case(), options.jobs)


sys.exit(main())
