# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text tests: which files are tests, and which programs they call."""

import os

import lit.formats

config.name = "Hone"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "corpus", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.hone_binary_dir, "test")

lit_config.load_config(config, os.path.join(os.path.dirname(__file__), "lit.common.cfg.py"))

hone_tools_dir = os.path.join(config.hone_binary_dir, "bin")
config.environment["PATH"] = os.pathsep.join([hone_tools_dir, config.llvm_tools_dir, config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"


def add_tools(folder, names):
    """Programs by their full path, so that nothing of the same name on PATH is tested instead."""
    for name in names:
        config.substitutions.append((rf"(?<![\w/.%-]){name}(?![\w/.:-])", os.path.join(folder, name)))


add_tools(config.llvm_tools_dir, ["FileCheck", "not", "count", "split-file", "mlir-opt", "llvm-nm", "llvm-objdump"])
add_tools(hone_tools_dir, ["hone", "hone-opt", "hone-run", "hone-lsp-server", "hone-reduce", "hone-tokenize"])
config.substitutions += [
    ("%cmake", config.cmake_command),
    ("%python", config.python_executable),
    ("%hone_src", config.hone_source_dir),
    ("%hone_build", config.hone_binary_dir),
]
