# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""transformers on PyTorch, without compilation."""

import torch
import transformers


class Engine:
    version = f"{torch.__version__}, transformers {transformers.__version__}"

    def load(self, path, threads, options):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.encodes = options.get("kind") == "encoder"
        kind = transformers.AutoModel if self.encodes else transformers.AutoModelForCausalLM
        self.model = kind.from_pretrained(path, dtype=getattr(torch, options["dtype"])).eval()

    def encode(self, rows):
        return self.model(input_ids=torch.tensor(rows), attention_mask=torch.ones(len(rows), len(rows[0])))

    def begin(self, ids):
        self.cache = transformers.DynamicCache()
        return self.step(*ids)

    def step(self, *ids):
        result = self.model(input_ids=torch.tensor([ids]), past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        self.cache = result.past_key_values
        return int(result.logits[0, -1].argmax())
