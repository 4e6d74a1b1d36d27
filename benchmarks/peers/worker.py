# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures one engine on one model in this process, and prints one JSON object as the last line.

  worker.py ENGINE PATH --threads N [--set KEY=VALUE ...]

Runs in the virtual environment that has the engine. A decoder is loaded, takes a prompt of 128 tokens and writes 32; then
the same again and a prompt of 512, each once uncounted and once counted. An encoder takes a batch of 32 x 128 tokens. The
first token counts from PEERS_START, the time at which the process was asked for.
"""

import argparse
import importlib
import json
import os
import statistics
import time

CONTEXT, NEW, PROMPT = 128, 32, 512
BATCH, LENGTH = 32, 128
VOCABULARY = 512  # ids are below it, so that every model has them


def spread(count, turn=0):
    """Token ids that do not repeat soon; turns begin with ids of their own, so that no engine knows the prompt already."""
    return [(turn + i * 7919) % VOCABULARY for i in range(count)]


def peak_bytes():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def measure_decoder(engine, start):
    """`engine` has begin(ids) for a fresh sequence and step(id); both return the next token once it is known."""
    token = engine.begin(spread(CONTEXT))
    first = time.time() - start
    result = {"first_token_seconds": first, "token": token}
    for turn in (1, 2):  # the first is not counted
        token = engine.begin(spread(CONTEXT, turn))
        begin = time.perf_counter()
        for _ in range(NEW):
            token = engine.step(token)
        result["decode_tokens_per_second"] = NEW / (time.perf_counter() - begin)
        begin = time.perf_counter()
        engine.begin(spread(PROMPT, turn + 2))
        result["prefill_tokens_per_second"] = PROMPT / (time.perf_counter() - begin)
    return result


def measure_generator(engine, start):
    """`engine` has generate(ids, new), which returns the first token, the seconds until it, and those between tokens."""
    token, _, _ = engine.generate(spread(CONTEXT), 1)
    result = {"first_token_seconds": time.time() - start, "token": token}
    for turn in (1, 2):
        _, _, gaps = engine.generate(spread(CONTEXT, turn), NEW + 1)
        result["decode_tokens_per_second"] = len(gaps) / sum(gaps)
        _, seconds, _ = engine.generate(spread(PROMPT, turn + 2), 1)
        result["prefill_tokens_per_second"] = PROMPT / seconds
    return result


def measure_encoder(engine, start):
    """`engine` has encode(rows of ids), which returns once the hidden states are known."""
    rows = [spread(LENGTH)] * BATCH
    engine.encode(rows)
    result = {"first_token_seconds": time.time() - start}
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        engine.encode(rows)
        seconds.append(time.perf_counter() - begin)
    result["encode_tokens_per_second"] = BATCH * LENGTH / statistics.median(seconds[1:])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine")
    parser.add_argument("path")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    start = float(os.environ.get("PEERS_START", time.time()))
    engine = importlib.import_module(f"engines.{args.engine}").Engine()
    imported = time.time() - start
    engine.load(args.path, args.threads, dict(option.split("=", 1) for option in args.set))
    loaded = time.time() - start
    measure = (measure_encoder if hasattr(engine, "encode") and engine.encodes else
               measure_generator if hasattr(engine, "generate") else measure_decoder)
    result = measure(engine, start)
    result.update(version=engine.version, import_seconds=imported, load_seconds=loaded - imported,
                  peak_rss_bytes=peak_bytes())
    print("\n" + json.dumps(result), flush=True)
    os._exit(0)  # some engines take long to go, or fault on the way


if __name__ == "__main__":
    main()
