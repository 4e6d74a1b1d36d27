# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""onnxruntime on a decoder with its cache in and out, which stays in its own values, or on an encoder."""

import numpy as np
import onnxruntime


class Engine:
    version = onnxruntime.__version__

    def load(self, path, threads, options):
        del options
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.encodes = "logits" not in self.outputs

    def encode(self, rows):
        ids = np.array(rows, np.int64)
        return self.session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})

    def begin(self, ids):
        self.length = 0
        # Builders leave some sizes of the cache symbolic: batch, heads, positions, head size.
        empty = {name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
                 for name, value in self.inputs.items() if name.startswith("past")}
        self.cache = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in empty.items()}
        return self.feed(ids)

    def step(self, token):
        return self.feed([token])

    def feed(self, ids):
        binding = self.session.io_binding()
        count, total = len(ids), self.length + len(ids)
        fed = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, total), np.int64),
               "position_ids": np.arange(self.length, total, dtype=np.int64)[None]}
        for name, array in fed.items():
            if name in self.inputs:
                binding.bind_cpu_input(name, array)
        for name, value in self.cache.items():
            binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            binding.bind_output(name, "cpu")
        self.session.run_with_iobinding(binding)
        results = dict(zip(self.outputs, binding.get_outputs()))
        self.length += count
        self.cache = {name.replace("present", "past_key_values"): value for name, value in results.items()
                      if name != "logits"}
        return int(results["logits"].numpy()[0, -1].argmax())
