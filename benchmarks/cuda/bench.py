#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench.py BUNDLE [--small] [FILTER]: Hone on this machine's GPU, cuBLASLt and PyTorch (flash attention) in one run.

A line for each kernel: microseconds of both, Hone's bytes and operations a second, and its fraction of the read bandwidth measured in
the same run. Then a line for each model: a decoding step against the time for reading its weights and state, and PyTorch's in a CUDA
graph. At the end the goals of the project, and whether they are met. Without PyTorch, or without one that sees a GPU, only Hone is
measured. --small runs everything with small shapes. FILTER selects kernels and models whose name contains it.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import check_artefacts
import make_weights

SMALL = 16  # what hone-cuda-benchmarks --small divides sizes by
PROMPT_TOKENS, NEW_TOKENS = 128, 128
PEER = "PyTorch µs"


def measure(torch, call):
    """Microseconds of a call: the best of five runs of about 20 ms."""
    best, calls = float("inf"), 5
    for attempt in range(6):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for i in range(calls):
            call(i)
        end.record()
        end.synchronize()
        time = 1000 * begin.elapsed_time(end) / calls
        if attempt:
            best = min(best, time)
        calls = min(max(int(20000 / time), 5), 500)
    return best


def tensors(torch, *shapes):
    return [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]


def linear(torch, rows, outputs, inputs):
    copies = min(max(int(512e6 / (2 * outputs * inputs)), 1), 16)
    weights = tensors(torch, *[(outputs, inputs)] * copies)
    (x,) = tensors(torch, (rows, inputs))
    return measure(torch, lambda i: torch.nn.functional.linear(x, weights[i % copies]))


def attention(torch, queries, keys):
    """By the flash kernel alone."""
    query, key, value = tensors(torch, (1, 32, queries, 128), (1, 8, keys, 128), (1, 8, keys, 128))
    options = {"is_causal": queries == keys, "enable_gqa": True}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        return measure(torch, lambda i: torch.nn.functional.scaled_dot_product_attention(query, key, value, **options))


def norm(torch, rows, count):
    x, weight = tensors(torch, (rows, count), (count,))
    return measure(torch, lambda i: torch.nn.functional.rms_norm(x, (count,), weight))


def decoder_step(torch, shape, keys):
    """A decoding step in bf16 after `keys` positions, recorded in a CUDA graph: the library's kernels without the cost of their launches."""
    functional = torch.nn.functional
    width, head, groups = shape["width"], shape["head"], shape["heads"] + 2 * shape["key_heads"]
    layers = []
    for _ in range(shape["layers"]):
        layers.append(tensors(torch, (width,), (groups * head, width), (width, shape["heads"] * head), (width,), (2 * shape["hidden"], width),
                              (width, shape["hidden"]), (1, shape["key_heads"], keys, head), (1, shape["key_heads"], keys, head)))
    embedding, last, cosine, sine = tensors(torch, (shape["vocabulary"], width), (width,), (1, head // 2), (1, head // 2))
    token = torch.zeros(1, dtype=torch.long, device="cuda")

    def rotated(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    def step():
        x = functional.embedding(token, embedding)
        for norm, qkv, out, norm2, gate_up, down, key_cache, value_cache in layers:
            rows = functional.linear(functional.rms_norm(x, (width,), norm), qkv).view(1, groups, 1, head)
            query, key, value = rows.split((shape["heads"], shape["key_heads"], shape["key_heads"]), 1)
            key_cache[:, :, -1:] = rotated(key)
            value_cache[:, :, -1:] = value
            found = functional.scaled_dot_product_attention(rotated(query), key_cache, value_cache, enable_gqa=True)
            x = x + functional.linear(found.reshape(1, -1), out)
            gate, up = functional.linear(functional.rms_norm(x, (width,), norm2), gate_up).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, down)
        token.copy_(functional.linear(functional.rms_norm(x, (width,), last), embedding).argmax(-1))

    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
    torch.cuda.synchronize()
    return measure(torch, lambda i: graph.replay())


PEERS = {"linear": linear, "attention": attention, "rms_norm": norm}


def peer_of(torch, case):
    """The time of PyTorch's kernel in bf16 at the shape of a case, or None where the case is a peer itself; quantized and pruned
    weights are compared with dense bf16."""
    match = re.fullmatch(r"(\w+)\.(.+)\.([\dx]+)", case)
    if not torch or not match or match[1] not in PEERS:
        return None
    try:
        return PEERS[match[1]](torch, *map(int, match[3].split("x")))
    except RuntimeError as error:
        print(f"{case}: PyTorch: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def find_torch():
    try:
        import torch
        import torch.nn.attention
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def text_of(value, form, width):
    return f"{'-' if value is None else format(value, form):>{width}}"


class Figures:
    """The measurements: times of cases, and fractions of the read bandwidth."""

    def __init__(self):
        self.rate, self.times, self.peers, self.bytes, self.steps = None, {}, {}, {}, {}

    def add(self, row, peer):
        case = row["case"]
        if case == "memory.read":
            self.rate = max(self.rate or 0, row["GB_per_s"])
        self.times[case], self.peers[case] = row["microseconds"], peer
        self.bytes[case] = row["GB_per_s"]

    def share(self, case):
        """The fraction of the read bandwidth."""
        return self.bytes[case] / self.rate if self.rate and case in self.bytes else None

    def speedup(self, case, other):
        return self.times[other] / self.times[case] if case in self.times and other in self.times else None

    def against_peer(self, case):
        return self.peers[case] / self.times[case] if self.peers.get(case) else None

    def step(self, name):
        return self.steps.get(name)


def goals_of(figures, shrink):
    """Each with its figure, None where it was not measured, and its goal, a lower bound."""

    def side(full):
        return full // shrink

    def layer(form, *sizes):
        return f"linear.{form}." + "x".join(map(str, sizes))

    square = side(8192)
    direct, wide = f"cublaslt.bf16.{square}.direct", (1, side(4096), side(14336))
    prefill = f"attention.bf16.{square}x{square}"
    return [
        ("dense layer, bf16, 8192 x 8192 x 8192, against cuBLASLt called directly", figures.speedup(f"cublaslt.bf16.{square}.layer", direct), 0.95),
        ("row by 4096 x 14336 in bf16, of the read bandwidth", figures.share(layer("bf16", *wide)), 0.85),
        ("row by 4096 x 14336 in int4, of the read bandwidth", figures.share(layer("affine4", *wide)), 0.85),
        ("attention of 8192 tokens, against PyTorch's flash kernel", figures.against_peer(prefill), 0.9),
        ("attention of a token to 65536, of the read bandwidth", figures.share(f"attention.bf16.1x{side(65536)}"), 0.85),
        ("step of a 0.5B model, of the read bandwidth", figures.step("0.5b" if shrink == 1 else "tiny"), 1 / 1.1),
        ("step of an 8B model, of the read bandwidth", figures.step("8b" if shrink == 1 else "tiny"), 1 / 1.1),
        ("2:4 layer, bf16, 8192 x 8192 x 8192, against dense cuBLASLt", figures.speedup(layer("sparse.bf16", *(square,) * 3), direct), 1.5),
        ("row by 4096 x 14336 in int4 with outliers, of the read bandwidth", figures.share(layer("outliers.affine4", *wide)), 0.75),
    ]


def measure_kernels(bundle, options, torch, figures):
    command = [bundle / "runtime" / "hone-cuda-benchmarks", *["--small"] * options.small, options.filter]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=check_artefacts.environment_of(bundle / "runtime")) as ours:
        for line in ours.stdout:
            rows.append(json.loads(line))
    print(f"{'kernel':38} {'Hone µs':>10} {PEER:>11} {'GB/s':>8} {'TFLOP/s':>8} {'of memory':>10}")
    for row in rows:
        figures.add(row, peer_of(torch, row["case"]))
    for row in rows:
        case = row["case"]
        print(f"{case:38} {row['microseconds']:10.1f} {text_of(figures.peers[case], '.1f', 11)} {row['GB_per_s']:8.0f} "
              f"{row['TFLOP_per_s']:8.1f} {text_of(figures.share(case), '.0%', 10)}", flush=True)
    if ours.returncode:
        raise SystemExit(f"bench.py: hone-cuda-benchmarks ended with {ours.returncode}")


def measure_model(bundle, folder, small):
    """The report of `hone-run bench`."""
    if not (folder / "weights.safetensors").exists():
        make_weights.write_weights(folder)
    sizes = [4, 4, 1] if small else [PROMPT_TOKENS, NEW_TOKENS, 5]
    options = [word for name, value in zip(["--prompt-length", "--new-tokens", "--repeat"], sizes) for word in (name, str(value))]
    result = subprocess.run([bundle / "runtime" / "hone-run", "bench", folder, "--json", *options], capture_output=True, text=True,
                            env=check_artefacts.environment_of(bundle / "runtime"))
    if result.returncode:
        raise SystemExit(f"bench.py: {folder.name}: {result.stderr.strip() or result.stdout.strip()}")
    if not small:
        os.remove(folder / "weights.safetensors")  # the disk need not hold two of them
    return json.loads(result.stdout)


def peer_of_model(torch, folder):
    """The time of PyTorch's step, after as many positions as ours have on average, or None."""
    shape = folder / "shape.json"
    if not torch or not shape.exists():
        return None
    return decoder_step(torch, json.loads(shape.read_text()), PROMPT_TOKENS + NEW_TOKENS // 2)


def measure_models(bundle, options, torch, figures):
    print(f"\n{'model':12} {'step µs':>10} {PEER:>11} {'MB read':>9} {'GB/s':>8} {'of memory':>10} {'prefill tokens/s':>17}")
    for folder in sorted((bundle / "shapes").iterdir()):
        name = folder.stem
        if (name == "tiny") != options.small or options.filter not in f"model.{name}":
            continue
        row = measure_model(bundle, folder, options.small)
        rate = row["achieved_bytes_per_second"] / 1e9
        figures.steps[name] = rate / figures.rate if figures.rate else None
        peer = None if options.small else peer_of_model(torch, folder)
        print(f"{name:12} {1e6 / row['decode_tokens_per_second']:10.1f} {text_of(peer, '.1f', 11)} {row['bytes_read_per_token'] / 1e6:9.1f} {rate:8.0f} "
              f"{text_of(figures.steps[name], '.0%', 10)} {row['prefill_tokens_per_second']:17.0f}", flush=True)


def print_goals(figures, shrink):
    print(f"\n{'figure':72} {'measured':>9} {'goal':>10}")
    for what, figure, least in goals_of(figures, shrink):
        verdict = "not measured" if figure is None else "of small sizes" if shrink > 1 else "met" if figure >= least else "missed"
        print(f"{what:72} {text_of(figure, '.3f', 9)} {least:>10.3f}  {verdict}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("bundle", type=pathlib.Path)
    options.add_argument("--small", action="store_true")
    options.add_argument("filter", nargs="?", default="")
    options = options.parse_intermixed_args()
    bundle, figures, torch = options.bundle.resolve(), Figures(), find_torch()
    if not torch:
        print("no PyTorch that sees a GPU: only Hone is measured", file=sys.stderr)
    measure_kernels(bundle, options, torch, figures)
    measure_models(bundle, options, torch, figures)
    print_goals(figures, SMALL if options.small else 1)


if __name__ == "__main__":
    main()
