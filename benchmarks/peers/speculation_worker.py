# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures one peer's speculative decoding in this process, and prints one JSON object as the last line.

  speculation_worker.py ENGINE PATH tokenizer.json PROMPTS.jsonl --threads N --new-tokens N [--mode MODE] [--program PATH]

Greedy answers of so many tokens, whatever ends a text. The first prompt is answered once uncounted.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import time
import urllib.request


class OpenVino:
    """prompt_lookup searches the prompt and the answer for the last tokens."""

    def __init__(self, path, args):
        import openvino
        import openvino_genai

        self.openvino, self.genai, self.version = openvino, openvino_genai, openvino.__version__
        settings = {"INFERENCE_NUM_THREADS": args.threads, "INFERENCE_PRECISION_HINT": "f32"}
        self.pipelines = {False: openvino_genai.LLMPipeline(path, "CPU", **settings),
                          True: openvino_genai.LLMPipeline(path, "CPU", prompt_lookup=True, **settings)}

    def generate(self, ids, new, drafts):
        import numpy as np

        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos = new, True
        config.do_sample = config.apply_chat_template = False
        if drafts:
            config.num_assistant_tokens, config.max_ngram_size = 5, 3
        tensors = (self.openvino.Tensor(array) for array in (np.array([ids], np.int64), np.ones((1, len(ids)), np.int64)))
        return list(self.pipelines[drafts].generate(self.genai.TokenizedInputs(*tensors), config).tokens[0])


class GenAi:
    def __init__(self, path, args):
        import onnxruntime_genai

        self.genai, self.version = onnxruntime_genai, onnxruntime_genai.__version__
        config = onnxruntime_genai.Config(path)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {
            "intra_op_num_threads": args.threads, "inter_op_num_threads": 1}}}}))
        self.model = onnxruntime_genai.Model(config)

    def generate(self, ids, new, drafts):
        parameters = self.genai.GeneratorParams(self.model)
        length = len(ids) + new
        parameters.set_search_options(max_length=length, min_length=length, do_sample=False)
        if drafts:
            parameters.set_speculative_options(ngram_size=4, max_draft_tokens=8, ngram_chained_lookup=True, min_adaptive_k=2,
                                               cooldown=False)
        generator = self.genai.Generator(self.model, parameters)
        generator.append_tokens([ids])
        while not generator.is_done():
            generator.generate_next_token()
        return [int(token) for token in generator.get_sequence(0)[len(ids):length]]


class Transformers:
    def __init__(self, path, args):
        import torch
        import transformers

        torch.set_num_threads(args.threads)
        self.torch, self.version = torch, transformers.__version__
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.model.generation_config.eos_token_id = None

    def generate(self, ids, new, drafts):
        options = {"prompt_lookup_num_tokens": 10} if drafts else {}
        with self.torch.no_grad():
            out = self.model.generate(self.torch.tensor([ids]), max_new_tokens=new, do_sample=False, pad_token_id=0, **options)
        return out[0, len(ids):].tolist()


class LlamaServer:
    """Two servers, with and without drafts. They keep what they learn of a text for the next one, as Hone's automaton does."""

    def __init__(self, path, args):
        shown = subprocess.run([args.program, "--version"], capture_output=True, text=True, check=False)
        self.version = next((line.split()[1] for line in (shown.stderr + shown.stdout).splitlines()
                             if line.startswith("version:")), "unknown")
        self.ports, self.servers = {}, []
        for drafts in (False, True):
            self.ports[drafts] = self.start(path, args, ["--spec-type", args.mode] if drafts else [])

    def start(self, path, args, options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.servers.append(subprocess.Popen(
            [args.program, "-m", path, "--port", str(port), "-t", str(args.threads), "-tb", str(args.threads), "-np", "1", "-c",
             "4096", "--temp", "0", "--no-webui", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(600):
            if self.servers[-1].poll() is not None:
                raise SystemExit(f"llama-server ended with exit code {self.servers[-1].returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                    return port
            except OSError:
                time.sleep(0.1)
        raise SystemExit("llama-server does not answer")

    def generate(self, ids, new, drafts):
        body = {"prompt": ids, "n_predict": new, "temperature": 0, "ignore_eos": True, "cache_prompt": False,
                "return_tokens": True}
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[drafts]}/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]

    def close(self):
        for server in self.servers:
            server.kill()


ENGINES = {"openvino": OpenVino, "genai": GenAi, "transformers": Transformers, "llama_server": LlamaServer}


def read_prompts(path, tokenizer):
    """(category, ids) of each line; of several turns the first."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer)
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return [(line["category"], tokenizer.encode(line["prompt"] if "prompt" in line else line["turns"][0]).ids) for line in lines]


def measure(engine, prompts, new):
    """By category: tokens a second as a mean over prompts without and with drafts, and the part of equal answers."""
    engine.generate(prompts[0][1], new, False)
    engine.generate(prompts[0][1], new, True)
    speeds = {}
    for category, ids in prompts:
        answers, rates = [], []
        for drafts in (False, True):
            begin = time.perf_counter()
            answers.append(engine.generate(ids, new, drafts))
            rates.append(len(answers[-1]) / (time.perf_counter() - begin))
        speeds.setdefault(category, []).append((*rates, answers[0] == answers[1]))
    return {category: dict(zip(("plain", "drafts", "same"), map(statistics.mean, zip(*rows))), prompts=len(rows))
            for category, rows in speeds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("path")
    parser.add_argument("tokenizer")
    parser.add_argument("prompts")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--new-tokens", type=int, required=True)
    parser.add_argument("--mode", default="")
    parser.add_argument("--program", default="")
    args = parser.parse_args()
    engine = ENGINES[args.engine](args.path, args)
    try:
        categories = measure(engine, read_prompts(args.prompts, args.tokenizer), args.new_tokens)
    finally:
        if hasattr(engine, "close"):
            engine.close()
    print("\n" + json.dumps({"version": engine.version, "categories": categories}), flush=True)
    os._exit(0)  # some engines take long to go, or fault on the way


if __name__ == "__main__":
    main()
