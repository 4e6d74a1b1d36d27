#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speculative decoding without a draft model, beside the peers' n-gram modes, on the same greedy token streams.

  speculation.py FOLDER --onnx MODEL.onnx --tokenizer tokenizer.json --prompts PROMPTS.jsonl

FOLDER is a trained decoder as Hugging Face has it (config.json, safetensors), MODEL.onnx the same one with a cache and the
logits of every position, and PROMPTS.jsonl what `hone bench --prompts` reads: {"category": ..., "prompt": ...} a line. Each
engine writes every answer without and with drafts, one after the other, in a process of its own; engines take turns in every
repeat. The table has new tokens by the time from prompt to end as a mean over prompts, the ratio of these means, and the part of
the answers that are the same with and without drafts, all as medians of the repeats. Environments and models go to --work and
are made once. A row that cannot be made or run says why.

llama.cpp's modes are those of its server, and need --llama-server: the program llama-server of a build of llama.cpp.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from environments import HERE, WORK, environment, say

HONE_MODES = ("automaton", "automaton+tree", "lookup")
LLAMA_MODES = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
REPEAT_SECONDS = 1800


class Failure(Exception):
    pass


def run(command):
    """Standard output of a command."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False,
                          timeout=REPEAT_SECONDS)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Failure((lines or [f"exit code {done.returncode}"])[-1][:200])
    return done.stdout


class Engine:
    """One row: `measure()` gives {"version", "categories": {category: {"plain", "drafts", "same", "prompts"}}}."""

    def __init__(self, args, label):
        self.args, self.label = args, label

    def target(self, name, command):
        """A file or folder below the work folder that a command makes once."""
        path = self.args.work / name
        if not path.exists():
            say("making", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            run([str(word).replace("{out}", str(path)) for word in command])
        return path


class Hone(Engine):
    def __init__(self, args, mode):
        super().__init__(args, f"Hone {mode}")
        self.mode = mode

    def measure(self):
        bin_folder = self.args.build / "bin"
        artefact = self.args.work / "speculation.hone"
        if not artefact.exists() or artefact.stat().st_mtime < (bin_folder / "hone").stat().st_mtime:
            run([bin_folder / "hone", "compile", self.args.onnx, "--speculate=tree", f"--tokenizer={self.args.tokenizer}", "-o",
                 artefact, "--quiet"])
        drafts = [f"--speculate={self.mode.split('+')[0]}", *(["--draft-tree"] if "tree" in self.mode else [])]
        found = json.loads(run([bin_folder / "hone-run", "bench", artefact, "--json", "--ignore-end", "--repeat=1", *drafts,
                                f"--prompts={self.args.prompts}", f"--threads={self.args.threads}",
                                f"--new-tokens={self.args.new_tokens}"]))
        version = json.loads((artefact / "manifest.json").read_text(encoding="utf-8"))["hone"]
        categories = {name: {"plain": one["plain_tokens_per_second"], "drafts": one["tokens_per_second"],
                             "same": one["same_texts"], "prompts": one["prompts"]}
                      for name, one in found["categories"].items()}
        return {"version": version, "categories": categories}


class Peer(Engine):
    """A peer in a process of speculation_worker.py, in the environment that has it."""

    def __init__(self, args, label, venv, engine, make, mode=""):
        super().__init__(args, label)
        self.venv, self.engine, self.make, self.mode = venv, engine, make, mode

    def measure(self):
        python = environment(self.args.work, self.venv) / "python"
        out = run([python, "-W", "ignore", HERE / "speculation_worker.py", self.engine, self.make(self), self.args.tokenizer,
                   self.args.prompts, f"--threads={self.args.threads}", f"--new-tokens={self.args.new_tokens}",
                   f"--mode={self.mode}", f"--program={self.args.llama_server or ''}"])
        return json.loads(out.splitlines()[-1])


def hugging_face(engine):
    return engine.args.folder


def genai_folder(engine):
    python = environment(engine.args.work, "engines") / "python"
    return engine.target("genai-speculation/model.onnx", (
        python, "-m", "onnxruntime_genai.models.builder", "-i", engine.args.folder, "-o",
        engine.args.work / "genai-speculation", "-p", "fp32", "-e", "cpu", "-c", engine.args.work / "cache")).parent


def openvino_folder(engine):
    tool = environment(engine.args.work, "optimum") / "optimum-cli"
    return engine.target("openvino-speculation/openvino_model.xml", (
        tool, "export", "openvino", "-m", engine.args.folder, "--task", "text-generation-with-past", "--weight-format", "fp32",
        engine.args.work / "openvino-speculation")).parent


def gguf_file(engine):
    python = environment(engine.args.work, "llama") / "python"
    return engine.target("gguf-speculation/model.gguf", (python, HERE / "models.py", "gguf", engine.args.folder, "{out}"))


def engines_of(args):
    rows = [Hone(args, mode) for mode in HONE_MODES]
    rows.append(Peer(args, "OpenVINO GenAI prompt_lookup", "engines", "openvino", openvino_folder))
    rows.append(Peer(args, "onnxruntime-genai n-gram", "engines", "genai", genai_folder))
    rows.append(Peer(args, "transformers prompt_lookup", "engines", "transformers", hugging_face))
    if args.llama_server:
        rows += [Peer(args, f"llama.cpp {mode}", "llama", "llama_server", gguf_file, mode) for mode in LLAMA_MODES]
    return [row for row in rows if not args.only or any(word in row.label for word in args.only.split(","))]


def medians(results):
    """The median of each figure of a category over the repeats."""
    categories = {}
    for name in results[0]["categories"]:
        repeats = [result["categories"][name] for result in results]
        categories[name] = {key: statistics.median(one[key] for one in repeats) for key in repeats[0]}
        categories[name]["speed_up"] = statistics.median(one["drafts"] / one["plain"] for one in repeats)
    return categories


def write_table(results, failures):
    print("| engine | version | category | prompts | plain, tokens/s | with drafts | speed-up | same answers |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for label, repeats in results.items():
        for category, one in medians(repeats).items():
            print(f"| {label} | {repeats[0]['version']} | {category} | {one['prompts']:.0f} | {one['plain']:.1f} | "
                  f"{one['drafts']:.1f} | {one['speed_up']:.2f} | {one['same']:.2f} |")
    for label, reason in failures.items():
        print(f"\n{label}: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--onnx", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--prompts", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--work", type=pathlib.Path, default=WORK)
    parser.add_argument("--llama-server", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="rows whose names have one of these words, with commas between them")
    args = parser.parse_args()
    for name in ("folder", "onnx", "tokenizer", "prompts", "build", "work", "llama_server"):
        if path := getattr(args, name):
            if name != "work" and not path.exists():
                parser.error(f"{path} does not exist")
            setattr(args, name, path.resolve())
    os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    results, failures = {}, {}
    for repeat in range(args.repeats):
        for row in engines_of(args):
            if row.label in failures:
                continue
            say(f"repeat {repeat + 1} of {args.repeats}:", row.label)
            try:
                results.setdefault(row.label, []).append(row.measure())
            except (Failure, subprocess.SubprocessError, OSError) as error:
                failures[row.label] = str(error)
                results.pop(row.label, None)
    write_table(results, failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
