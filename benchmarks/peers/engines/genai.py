# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""onnxruntime-genai on a folder of its own model builder."""

import json

import onnxruntime_genai


class Engine:
    version = onnxruntime_genai.__version__
    encodes = False

    def load(self, path, threads, options):
        del options
        config = onnxruntime_genai.Config(path)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {
            "intra_op_num_threads": threads, "inter_op_num_threads": 1}}}}))
        self.model = onnxruntime_genai.Model(config)

    def begin(self, ids):
        parameters = onnxruntime_genai.GeneratorParams(self.model)
        parameters.set_search_options(max_length=1024, min_length=1024, do_sample=False)
        self.generator = None  # the last one's cache goes first
        self.generator = onnxruntime_genai.Generator(self.model, parameters)
        self.generator.append_tokens([ids])
        return self.step(None)

    def step(self, token):
        del token  # the generator has it
        self.generator.generate_next_token()
        return int(self.generator.get_sequence(0)[-1])
