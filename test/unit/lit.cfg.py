# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unit tests: every program of build/test/unit whose name ends in Tests, each GoogleTest case a test."""

import os

import lit.formats

config.name = "Hone-Unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.suffixes = []
config.test_exec_root = os.path.join(config.hone_binary_dir, "test", "unit")
config.test_source_root = config.test_exec_root

lit_config.load_config(config, os.path.join(config.hone_source_dir, "test", "lit.common.cfg.py"))
