# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""OpenVINO: its generation pipeline for a decoder, the plain runtime for an encoder (an .onnx file)."""

import numpy as np
import openvino


class Engine:
    version = openvino.__version__

    def load(self, path, threads, options):
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, **options}
        self.encodes = path.endswith(".onnx")
        if self.encodes:
            self.model = openvino.Core().compile_model(path, "CPU", settings)
        else:
            import openvino_genai

            self.genai = openvino_genai
            self.pipeline = openvino_genai.LLMPipeline(path, "CPU", **settings)

    def encode(self, rows):
        ids = np.array(rows, np.int64)
        return self.model({"input_ids": ids, "attention_mask": np.ones_like(ids)})

    def generate(self, ids, new):
        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos = new, True
        config.do_sample = config.apply_chat_template = False
        tensors = (openvino.Tensor(array) for array in (np.array([ids], np.int64), np.ones((1, len(ids)), np.int64)))
        result = self.pipeline.generate(self.genai.TokenizedInputs(*tensors), config)
        times = list(result.perf_metrics.raw_metrics.m_new_token_times)  # milliseconds
        gaps = [(after - before) / 1000 for before, after in zip(times, times[1:])]
        return int(result.tokens[0][0]), result.perf_metrics.get_ttft().mean / 1000, gaps
