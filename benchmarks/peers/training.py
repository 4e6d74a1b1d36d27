#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of `hone tune` beside one of PyTorch, eager and compiled, and of llama.cpp's finetune: seconds and peak memory.

All take turns. The steps are alike: f32, or with --precision bf16 products of bf16 (PyTorch's autocast), AdamW, gradients clipped to a norm of 1 (--clip-norm), the same windows of tokens. The first two steps of a
run, in which PyTorch compiles, do not count; peak memory is of the whole process, with its compiler. llama.cpp needs --llama-finetune: the program llama-finetune of a
build of llama.cpp. Its steps have one window of a text of its own, and no clipping.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy as np

from environments import HERE, WORK, environment

PYTORCH = {"eager": [], "compiled": ["--compile"]}
ENGINES = ("hone", *PYTORCH)
WARMUP = 2


def measure(command, **settings):
    """What a command prints, and the most memory that it held, in MiB."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True, **settings) as process:
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with exit code {process.returncode}")
    return text, usage.ru_maxrss / 1024


def run_hone(options, threads):
    """The seconds of each step, and the peak in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log.jsonl")
        _, peak = measure([options.build / "bin/hone", "tune", options.model, "--data", options.tokens, "--context", options.context, "--batch", options.batch,
                           "--steps", options.steps, "--threads", threads, "--log", log, "--quiet", "--precision", options.precision, "--clip-norm", options.clip_norm, "-o", pathlib.Path(folder, "tuned.onnx")])
        rates = [json.loads(line)["tokens_per_second"] for line in log.read_text(encoding="utf-8").splitlines()]
    ends = [options.batch * options.context * (number + 1) / rate for number, rate in enumerate(rates)]
    return [end - begin for begin, end in zip([0.0] + ends, ends)], peak


def run_pytorch(options, threads, more):
    text, peak = measure([environment(options.work, "engines") / "python", HERE / "training_worker.py", options.folder, options.tokens, "--context", options.context,
                          "--batch", options.batch, "--steps", options.steps, "--threads", threads, "--clip-norm", options.clip_norm, *(["--bf16"] if options.precision == "bf16" else []), *more],
                         stderr=subprocess.DEVNULL)
    return json.loads(text.splitlines()[-1]), peak


def make_llama(options, folder):
    """The model with its tokenizer, and a text for all steps of its windows: sources of Python's own library."""
    python = environment(options.work, "llama") / "python"
    subprocess.run([python, HERE / "models.py", "gguf", options.folder, folder / "model.gguf", "--tokenizer", options.tokenizer,
                    "--context", str(options.context)], check=True)
    library = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in library)
    (folder / "text").write_text(text[:8 * options.steps * options.context], encoding="utf-8")  # a token has at most 8 characters on average


def run_llama(options, threads, folder):
    """A window is a step, and the next begins in its middle. Seconds are those between the lines of its progress."""
    command = [options.llama_finetune, "-m", folder / "model.gguf", "-f", folder / "text", "-o", folder / "tuned.gguf", "-t", threads, "-tb", threads, "-c", options.context,
               "-b", options.context, "-ub", options.context, "-fa", "off", "-opt", "adamw", "-epochs", 1, "-val-split", 0]
    ends, rest = [time.perf_counter()], b""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while chunk := process.stderr.read1():
            rest = (rest + chunk)[-1 << 16:]
            ends += [time.perf_counter()] * chunk.count(b"train:")
            if len(ends) > options.steps:
                process.terminate()
                break
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    if len(ends) <= options.steps:
        sys.exit(f"{options.llama_finetune} took {len(ends) - 1} steps: {rest.decode(errors='replace').splitlines()[-1]}")
    return [end - begin for begin, end in zip(ends, ends[1:])], usage.ru_maxrss / 1024


def run_engine(name, options, threads, folder):
    if name == "hone":
        return run_hone(options, threads)
    if name in PYTORCH:
        return run_pytorch(options, threads, PYTORCH[name])
    return run_llama(options, threads, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="the ONNX model")
    parser.add_argument("folder", type=pathlib.Path, help="the same in transformers' form: config.json, and weights or none")
    parser.add_argument("tokens", type=pathlib.Path, help=".npy of token ids")
    parser.add_argument("--build", type=pathlib.Path, default="build", help="the build folder")
    parser.add_argument("--work", type=pathlib.Path, default=WORK, help="where the environments of the peers are")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="of products")
    parser.add_argument("--clip-norm", type=float, default=1, help="the largest norm of all gradients; 0: any")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--llama-finetune", type=pathlib.Path, help="a program of llama.cpp; FOLDER then has weights, and --tokenizer is needed")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="tokenizer.json of the model")
    options = parser.parse_args()
    if options.llama_finetune and (options.batch != 1 or options.precision != "f32"):
        parser.error("llama.cpp takes one window a step in f32: expected --batch 1 --precision f32 with --llama-finetune")
    if options.llama_finetune and not options.tokenizer:
        parser.error("expected --tokenizer with --llama-finetune")
    needed, given = options.steps * options.batch * options.context + 1, len(np.load(options.tokens, mmap_mode="r"))
    if given < needed:
        parser.error(f"expected {needed} tokens or more for --steps {options.steps}, but {options.tokens} has {given}")
    with tempfile.TemporaryDirectory() as folder:
        if options.llama_finetune:
            options.engines.append("llama.cpp")
            make_llama(options, pathlib.Path(folder))
        compare(options, pathlib.Path(folder))


def compare(options, folder):
    print(f"{'threads':>7} {'engine':9} {'s/step':>8} {'tokens/s':>9} {'hone is':>8} {'peak, MiB':>10} {'hone has':>9}")
    for threads in options.threads:
        turns = [{name: run_engine(name, options, threads, folder) for name in options.engines} for _ in range(options.turns)]
        seconds = {name: [statistics.median(turn[name][0][WARMUP:]) for turn in turns] for name in options.engines}
        peaks = {name: max(turn[name][1] for turn in turns) for name in options.engines}
        for name in options.engines:
            each = statistics.median(seconds[name])
            faster = statistics.median(peer / own for peer, own in zip(seconds[name], seconds[options.engines[0]]))
            print(f"{threads:7} {name:9} {each:8.3f} {options.batch * options.context / each:9.0f} {faster:7.2f}× {peaks[name]:10.0f} "
                  f"{peaks[options.engines[0]] / peaks[name]:8.2f}×", flush=True)


if __name__ == "__main__":
    main()
