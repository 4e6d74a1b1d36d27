# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures Hone as a user does: two runs of `hone-run bench`, one for decoding and one for the long prompt.

  hone_bench.py HONE-RUN MODEL.hone --threads N
"""

import argparse
import json
import os
import subprocess

from worker import CONTEXT, NEW, PROMPT


def bench(args, prompt, new):
    command = [args.tool, "bench", args.model, "--json", f"--threads={args.threads}", f"--prompt-length={prompt}",
               f"--new-tokens={new}", "--repeat=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    decoding, reading = bench(args, CONTEXT, NEW), bench(args, PROMPT, 1)
    result = {key: decoding[key] for key in ("decode_tokens_per_second", "first_token_seconds", "load_seconds",
                                             "bytes_read_per_token")}
    result["prefill_tokens_per_second"] = reading["prefill_tokens_per_second"]
    result["peak_rss_bytes"] = max(run["peak_rss_bytes"] for run in (decoding, reading))
    with open(os.path.join(args.model, "manifest.json"), encoding="utf-8") as file:
        version = json.load(file)["hone"]
    print(json.dumps({**result, "version": version}))


if __name__ == "__main__":
    main()
