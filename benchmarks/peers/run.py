#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hone beside onnxruntime, llama.cpp, OpenVINO and PyTorch on this machine: one command, one table.

  run.py                                         everything: installs, converts, measures, writes the tables (hours)
  run.py --models gpt2 --only hone,llama.cpp --threads 1 --precisions f32
  run.py --table                                 only write the tables of what was measured

Environments, models and results.jsonl (a line a measurement) go to --work. What is there is not made or measured again, so
that a run that was broken off goes on with the same command; --redo measures anew. Repeats of the engines take turns, each
in a process of its own, and the machine's read limit is measured before and after each. What a row loads is read once before
its turn, so that no first token waits for the disk. The tables have medians and quartiles, mark repeats around which the read
limit moved by more than 10 %, and go to results.md and results.json in --work. A row that cannot be made or run says why.

--isa caps every engine alike: Hone and llama.cpp are built for that ISA, oneDNN (OpenVINO, PyTorch) is told by its variable.
onnxruntime cannot be capped; its rows say so and do not count as peers.

On a machine with other work, --priority (as root) gives measurements the highest ordinary priority.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import table
from environments import HERE, WORK, environment, say
from isas import NAMES, Isa, settings
from models import MODELS
from plan import PRECISIONS, all_rows, model_files, runtime_steps

ENGINES = ("hone", "onnxruntime", "onnxruntime-genai", "llama.cpp", "openvino", "pytorch")
QUIET = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error",
         "PYTHONWARNINGS": "ignore"}


def last_line(text):
    """What tells most about a failure: the last line that speaks of an error, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower()]
    return (told or lines or ["no message"])[-1][:200]


def read_once(files):
    """Reads files, so that the system keeps them in memory."""
    for name in files:
        with open(name, "rb") as stream:
            while stream.read(1 << 22):
                pass


def raise_priority():
    os.setsid()
    os.nice(-20)
    try:  # where the scheduler shares between sessions first (sched_autogroup)
        pathlib.Path("/proc/self/autogroup").write_text("-20", encoding="ascii")
    except OSError:
        pass


class Suite:
    def __init__(self, args):
        self.args, self.work = args, pathlib.Path(args.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.results = self.work / "results.jsonl"
        self.records = []
        if self.results.exists():
            self.records = [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()]
        self.isa = Isa(args.isa)
        self.runtime = self.work / self.isa.label("build") if self.isa.caps else args.build
        self.failed = {}  # targets that could not be made in this run, and why
        self.again = set()  # targets that were made again in this run

    def record(self, **values):
        values["time"] = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        self.records.append(values)
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    # Files

    def run(self, command, measures=False, timeout=None):
        """Runs a command of the plan; its status and its output."""
        words = []
        for word in command:
            if word.startswith("@"):
                name, tool = word[1:].split("/", 1)
                word = str(environment(self.work, name) / tool)
            words.append(word.replace("{work}", str(self.work)).replace("{peers}", str(HERE))
                         .replace("{build}", str(self.args.build)).replace("{runtime}", str(self.runtime))
                         .replace("{source}", str(HERE.parents[1])))
        first = raise_priority if measures and self.args.priority else None
        try:
            done = subprocess.run(words, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", preexec_fn=first, timeout=timeout, check=False,
                                  env={**settings(self.isa), **QUIET, "PEERS_START": str(time.time())})
        except subprocess.TimeoutExpired:
            return 124, f"error: not done after {timeout} s"
        ended = f"\nerror: ended by {signal.Signals(-done.returncode).name}" if done.returncode < 0 else ""
        return done.returncode, done.stdout + ended

    def is_stale(self, step, target):
        """Whether the compiler of Hone is newer than what it made."""
        tool = pathlib.Path(step.command[0].replace("{build}", str(self.args.build)))
        return step.command[0].startswith("{build}") and tool.stat().st_mtime > target.stat().st_mtime

    def is_due(self, step, target):
        if step.again:
            return step.target not in self.again
        return not target.exists() or self.is_stale(step, target)

    def make(self, steps):
        """Makes files; returns why that failed, or nothing."""
        for step in steps:
            target = self.work / step.target
            if not self.is_due(step, target):
                continue
            self.again.add(step.target)
            if step.target not in self.failed:
                say("making", step.target)
                target.parent.mkdir(parents=True, exist_ok=True)
                begin = time.time()
                status, output = self.run(step.command, timeout=self.args.timeout * 4)
                (self.work / "making.log").open("a", encoding="utf-8").write(f"== {step.target}\n{output}\n")
                if status == 0 and target.exists():
                    self.record(kind="made", target=step.target, seconds=time.time() - begin)
                    continue
                self.failed[step.target] = f"cannot make {step.target}: {last_line(output)}"
            return self.failed[step.target]
        return None

    # Measurements

    def limit(self, threads):
        """Bytes that the machine reads a second, now."""
        status, output = self.run(("{runtime}/benchmarks/hone-kernel-ratios", "--limits", f"--threads={threads}"), measures=True)
        if status:
            raise SystemExit(f"cannot measure the machine's limits: {last_line(output)}")
        return json.loads(output)

    def done(self, row, threads, repeat):
        return not self.args.redo and any(
            record["kind"] == "run" and not record["why"] and table.turn_of(record) ==
            (row.name, self.isa.name, threads, repeat) for record in self.records)

    def measure(self, row, threads, repeat, before):
        """Measures a row once; returns the limits after it."""
        why, values = self.make(row.steps), {}
        if not why:
            read_once(model_files(self.work / row.path))
            status, output = self.run((*row.command, "--threads", str(threads)), measures=True, timeout=self.args.timeout)
            why = last_line(output) if status else None
            values = {} if status else json.loads(output.strip().splitlines()[-1])
        after = self.limit(threads)
        if not why:
            around = [limits["read_bytes_per_second"] for limits in (before, after)]
            values["limit"], values["limit_moved"] = max(around), max(around) / min(around) - 1
            size = sum(map(os.path.getsize, model_files(self.work / row.path)))
            values["file_bytes"] = size
            values.setdefault("bytes_read_per_token", (size - row.unread) * row.resident)
        self.record(kind="run", name=row.name, engine=row.engine, label=row.label, model=row.model, precision=row.precision,
                    isa=self.isa.name, threads=threads, repeat=repeat, ours=row.ours, capped=row.capped, why=why, **values)
        say(f"{row.name}, threads {threads}:", why or ", ".join(
            f"{key.split('_')[0]} {values[key]:.1f}" for key in values if key.endswith("tokens_per_second")))
        return after

    def rows(self):
        return [row for row in all_rows(self.args.models, self.isa)
                if row.engine in self.args.only and row.precision in self.args.precisions]

    def make_all(self):
        for row in self.rows():
            if why := self.make(row.steps):
                say(f"{row.name}: {why}")

    def measure_all(self):
        rows = self.rows()
        if why := self.make(runtime_steps(self.isa)):
            raise SystemExit(why)
        for threads in self.args.threads:
            limits = self.limit(threads)
            self.record(kind="limits", isa=self.isa.name, threads=threads, **limits)
            for model in self.args.models:
                for precision in self.args.precisions:
                    group = [row for row in rows if (row.model, row.precision) == (model, precision)]
                    for repeat in range(self.args.repeats):
                        for row in group:
                            if not self.done(row, threads, repeat):
                                limits = self.measure(row, threads, repeat, limits)

    def write_tables(self):
        text, values = table.build(self.records, self.args)
        (self.work / "results.md").write_text(text, encoding="utf-8")
        (self.work / "results.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        print(text)


def listed(known):
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"unknown '{word}'; known: {', '.join(known)}")
        return words
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=listed(MODELS), default=["gpt2", "qwen2.5-0.5b", "minilm"],
                        help="comma-separated: " + ", ".join(MODELS))
    parser.add_argument("--only", type=listed(ENGINES), default=list(ENGINES), help="comma-separated: " + ", ".join(ENGINES))
    parser.add_argument("--precisions", type=listed(PRECISIONS), default=list(PRECISIONS),
                        help="comma-separated: " + ", ".join(PRECISIONS))
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--isa", choices=NAMES, default="native", help="cap every engine to an ISA (default native: not capped)")
    parser.add_argument("--repeats", type=int, default=3, help="turns that every row takes (default 3)")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build", help="build folder of Hone")
    parser.add_argument("--work", default=WORK)
    parser.add_argument("--timeout", type=int, default=300, help="seconds that one measurement may take (default 300)")
    parser.add_argument("--priority", action="store_true", help="measure at the highest ordinary priority")
    parser.add_argument("--redo", action="store_true", help="measure again what was measured")
    parser.add_argument("--make", action="store_true", help="make environments and models, measure nothing")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    args = parser.parse_args()
    suite = Suite(args)
    if args.make:
        suite.make_all()
    elif not args.table:
        suite.measure_all()
    suite.write_tables()


if __name__ == "__main__":
    main()
