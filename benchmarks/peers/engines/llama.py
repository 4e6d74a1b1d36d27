# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llama.cpp by its C interface, as llama-cpp-python binds it."""

import llama_cpp
import numpy as np


class Engine:
    version = llama_cpp.__version__
    encodes = False

    def load(self, path, threads, options):
        del options
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, None)
        llama_cpp.llama_backend_init()
        weights = llama_cpp.llama_model_default_params()
        # Quantized weights that version 0.3.36 lays out for AMX end in SIGSEGV at the first prompt.
        weights.use_extra_bufts = b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), weights)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = 1024, 512, 512
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def begin(self, ids):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        return self.feed(ids)

    def step(self, token):
        return self.feed([token])

    def feed(self, ids):
        tokens = (llama_cpp.llama_token * len(ids))(*ids)
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError("llama_decode failed")
        logits = llama_cpp.llama_get_logits_ith(self.context, -1)
        return int(np.ctypeslib.as_array(logits, shape=(self.vocabulary,)).argmax())
