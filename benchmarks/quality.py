#!/usr/bin/env python3
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each way to compress a language model costs it, at which size: the table and the plot of docs/compression.md.

Calibrates the model, compresses it in every way of FORMS, and measures the perplexity of each on text that neither training nor
calibration saw. Writes a report of every weight (NAME.json), all of them beside each other (frontier.html) and the table (table.md) to
--output, and ends with an error where one of ORDERS does not hold. --llama-cpp adds llama.cpp's forms of the same model, each of which
must be beaten by a form of Hone in no more bytes; with --llama-tools FOLDER they are all K and IQ forms with an importance matrix, made by
the programs llama-imatrix and llama-quantize there on the text that Hone is calibrated with. The model is that of the shared folder where
there is one, and otherwise the example of the checkout on the checkout's own source.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))
from environments import WORK, environment  # noqa: E402

WINDOW = 512
CALIBRATION_TOKENS, COST_TOKENS = 65536, 2048
CALIBRATED = "--calibration"  # becomes the file of statistics
FORMS = {
    "f32": [],
    "int8": ["--quantize=int8", CALIBRATED],
    "int6": ["--quantize=int6", CALIBRATED],
    "int5": ["--quantize=int5", CALIBRATED],
    "int4": ["--quantize=int4", CALIBRATED],
    "int4 groups of 32": ["--quantize=int4", "--group=32", CALIBRATED],
    "int4 groups of 32, outputs of 8 bits": ["--quantize=int4", "--group=32", "--quantize-outputs=int8", CALIBRATED],
    "int4 by rtn": ["--quantize=int4", "--quantize-method=rtn"],
    "int4 by awq": ["--quantize=int4", "--quantize-method=awq", CALIBRATED],
    "int4 codebooks": ["--quantize=int4", "--quantize-method=squeezellm-gptq", CALIBRATED],
    "int4 codebooks, outliers": ["--quantize=int4", "--quantize-method=squeezellm-gptq", "--outliers=0.45%", CALIBRATED],
    "int3": ["--quantize=int3", CALIBRATED],
    "int3, outliers": ["--quantize=int3", "--outliers=0.45%", CALIBRATED],
    "int3, outliers, outputs of 8 bits": ["--quantize=int3", "--outliers=0.4%", "--quantize-outputs=int8", CALIBRATED],
    "int3 codebooks": ["--quantize=int3", "--quantize-method=squeezellm-gptq", CALIBRATED],
    "3.25 bits": ["--target-bits-per-weight=3.25", CALIBRATED],
    "3.5 bits": ["--target-bits-per-weight=3.5", CALIBRATED],
    "4.2 bits": ["--target-bits-per-weight=4.2", CALIBRATED],
    "2:4 by magnitude": ["--prune=2:4"],
    "2:4 by wanda": ["--prune=2:4", "--prune-method=wanda", CALIBRATED],
    "2:4 by sparsegpt": ["--prune=2:4", CALIBRATED],
    "2:4 of int4": ["--prune=2:4", "--quantize=int4", CALIBRATED],
    "25 % of channels": ["--prune=structured", "--sparsity=25%", CALIBRATED],
}
# Beside forms with an importance matrix.
FINE_FORMS = {**{f"{bits} bits": [f"--target-bits-per-weight={bits}", CALIBRATED]
                 for bits in (2.25, 2.5, 2.75, 3, 3.75, 4, 4.25, 4.5, 5, 5.5, 6, 6.5, 7, 7.25, 7.5, 8)},
              "int8 groups of 128": ["--quantize=int8", "--group=128", CALIBRATED]}
# The first of two has the lower perplexity.
ORDERS = [("int4", "int4 by rtn"), ("3.5 bits", "int3"), ("2:4 by sparsegpt", "2:4 by wanda"), ("2:4 by wanda", "2:4 by magnitude")]
# What half a percent of outliers gains is less than what a model as small as the example moves with the text that is measured on.
ORDERS_OF_SHARED = [("int3, outliers", "int3")]
LLAMA_FORMS = ("Q3_K_S", "Q3_K_M", "Q4_0", "Q4_K_S")
IMPORTANCE_FORMS = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "Q2_K_S", "Q2_K", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "Q3_K_S", "Q3_K_M",
                    "Q3_K_L", "IQ4_XS", "IQ4_NL", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0")
MOST_OF_INT4 = 1.01  # of the perplexity of f32, with groups of 32


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip() or f"{command[0]} ended with {result.returncode}")
    return result.stdout


def tokens_of(pattern, tokenizer):
    from tokenizers import Tokenizer
    text = "\n".join(path.read_text() for path in sorted(ROOT.glob(pattern)))
    return np.array(Tokenizer.from_file(str(tokenizer)).encode(text).ids, np.int32)


def shared_model():
    """The folder of the trained model, or None where there is none."""
    path = pathlib.Path(os.environ.get("HONE_SHARED") or ROOT.parent / "shared") / "models" / "lm"
    return path if path.is_dir() else None


def choose_model(output):
    """A model, tokens to calibrate it with and tokens to measure it on."""
    if shared := shared_model():
        return shared / "target" / "optimum" / "model.onnx", shared / "train.tokens.npy", shared / "eval_tokens.npy"
    example = ROOT / "examples" / "python-lm"
    for name, pattern in (("train.npy", "benchmarks/**/*.py"), ("test.npy", "test/differential/*.py")):
        np.save(output / name, tokens_of(pattern, example / "tokenizer.json"))
    return example / "model.onnx", output / "train.npy", output / "test.npy"


def measure(tools, model, form, flags, statistics, tokens, output):
    """The report of the form, with what it predicts; of one that was measured before as it is."""
    report, artefact = output / f"{form.replace(' ', '-')}.json", output / "model.hone"
    if report.exists():
        return json.loads(report.read_text())
    flags = [f"{CALIBRATED}={statistics}" if flag == CALIBRATED else flag for flag in flags]
    run(tools / "hone", "compile", model, *flags, "-o", artefact, f"--report={output / 'new.json'}", "--quiet")
    said = json.loads((output / "new.json").read_text())
    said["label"], said["after"] = form, json.loads(run(tools / "hone", "eval", artefact, "--tokens", tokens, "--window", WINDOW, "--json"))
    report.write_text(json.dumps(said))
    return said


def make_importance_matrix(tools, model, tokens, output):
    """llama.cpp's importance matrix of the text of these tokens."""
    from tokenizers import Tokenizer
    text = Tokenizer.from_file(str(shared_model() / "tokenizer.json")).decode(tokens.tolist(), skip_special_tokens=False)
    (output / "calibration.txt").write_text(text, encoding="utf-8")
    run(tools / "llama-imatrix", "-m", model, "-f", output / "calibration.txt", "-o", output / "importance.gguf", "-c", WINDOW)
    return output / "importance.gguf"


def measure_llama(tokens, calibration, output, options):
    """(form, bytes, bits a weight, perplexity) of llama.cpp's forms of the shared model."""
    folder, programs = shared_model(), options.llama_tools
    python, source, rows = environment(options.work.resolve(), "llama") / "python", output / "model.gguf", []
    run(python, PEERS / "models.py", "gguf", folder / "target" / "hf", source, "--tokenizer", folder / "tokenizer.json", "--context", WINDOW)
    matrix = make_importance_matrix(programs, source, calibration, output) if programs else None
    for form in IMPORTANCE_FORMS if programs else LLAMA_FORMS:
        made = output / f"model-{form}.gguf"
        if programs:
            run(programs / "llama-quantize", "--imatrix", matrix, source, made, form)
        said = json.loads(run(python, PEERS / "perplexity.py", *(("F32", made) if programs else (form, source)), tokens, WINDOW, made))
        rows.append((f"llama.cpp {form}", said["bytes"], 8 * said["bytes"] / said["elements"], said["perplexity"]))
    return rows


def rows_of(reports):
    """(form, bytes, bits a weight, perplexity) of Hone's forms."""
    return [(form, report["totals"]["bytes"], report["totals"]["bits_per_weight"], report["after"]["perplexity"])
            for form, report in reports.items()]


def write_table(rows, path):
    plain = rows[0][3]
    lines = ["| form | MB | bits a weight | perplexity | |", "| --- | --- | --- | --- | --- |"]
    for form, size, bits, perplexity in rows:
        lines.append(f"| {form} | {size / 1e6:.2f} | {bits:.2f} | {perplexity:.3f} | {100 * (perplexity / plain - 1):+.1f} % |")
    path.write_text("\n".join(lines) + "\n")
    print(path.read_text(), end="")


def check_orders(reports, orders):
    wrong = [f"{a} is not better than {b}" for a, b in orders if a in reports and b in reports and
             not reports[a]["after"]["perplexity"] < reports[b]["after"]["perplexity"]]
    fine, plain = (reports.get(name, {"after": {}})["after"].get("perplexity") for name in ("int4 groups of 32", "f32"))
    if fine and not fine <= MOST_OF_INT4 * plain:
        wrong.append(f"int4 in groups of 32 costs more than {100 * (MOST_OF_INT4 - 1):.0f} %")
    return wrong


def check_peers(rows, peers):
    return [f"no form in {size / 1e6:.2f} MB is better than {form}" for form, size, _, perplexity in peers
            if not any(ours <= size and predicts < perplexity for _, ours, _, predicts in rows)]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    options.add_argument("--output", type=pathlib.Path, default=pathlib.Path("quality"), help="where files go; rows that are there are kept")
    options.add_argument("--tokens", type=int, default=65536, help="how many tokens to measure on")
    options.add_argument("--only", default="", help="forms whose name contains this, and f32")
    options.add_argument("--llama-cpp", action="store_true", help="llama.cpp's forms too; the first time installs it")
    options.add_argument("--llama-tools", type=pathlib.Path, help="with --llama-cpp: the folder of llama-imatrix and llama-quantize")
    options.add_argument("--work", type=pathlib.Path, default=WORK, help="where llama.cpp is installed")
    options = options.parse_args()
    if options.llama_tools and not options.llama_cpp:
        sys.exit("expected --llama-cpp with --llama-tools")
    if options.llama_cpp and not shared_model():
        sys.exit("--llama-cpp needs the model of the shared folder: the example is an ONNX file alone")
    tools, output = options.build.resolve() / "bin", options.output
    output.mkdir(parents=True, exist_ok=True)
    model, train, test = choose_model(output)
    statistics, tokens = output / "statistics.safetensors", output / "tokens.npy"
    np.save(tokens, np.load(test)[:options.tokens + 1])
    if not statistics.exists():
        run(tools / "hone", "calibrate", model, "--tokens", train, "--max-tokens", CALIBRATION_TOKENS, "--cost-tokens", COST_TOKENS,
            "-o", statistics)
    forms = {**FORMS, **(FINE_FORMS if options.llama_tools else {})}
    reports = {form: measure(tools, model, form, flags, statistics, tokens, output) for form, flags in forms.items()
               if form == "f32" or options.only in form}
    for form in reports:
        reports[form]["before"] = reports["f32"]["after"]
        (output / f"{form.replace(' ', '-')}.json").write_text(json.dumps(reports[form]))
    run(tools / "hone", "report", *(output / f"{form.replace(' ', '-')}.json" for form in reports), "-o", output / "frontier.html")
    rows = rows_of(reports)
    peers = measure_llama(tokens, np.load(train)[:CALIBRATION_TOKENS], output, options) if options.llama_cpp else []
    write_table(rows + peers, output / "table.md")
    wrong = check_orders(reports, ORDERS + (ORDERS_OF_SHARED if shared_model() else [])) + check_peers(rows, peers)
    if wrong:
        sys.exit("; ".join(wrong))


main()
