# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run_examples.py SOURCE FOLDER PAGE.md...: runs the commands of a page's `sh` examples, one after the other, in FOLDER.

The language model of the checkout is there under the names that the pages use, and for calls by name an encoder with the results that
are expected of it. LEFT_OUT says which commands are not run, by a part of them, and why; a reason that no command needs is a failure too.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
from tokenizers import Tokenizer, models

GPU = "needs a GPU" if not shutil.which("nvidia-smi") else None
LEFT_OUT = {
    "./dev ": "is of a clone",
    "export PATH=": "is of a clone",
    "hone run decoder.hone ": "the decoder of an encoder-decoder is not among the models of the checkout",
    "'…'": "stands for any pass",
    " OPTIONS ": "stands for any options",
    "build-asan/bin/": "needs a build of the preset asan",
    "=NAME ": "stands for any weight",
    "hone report int8.json ": "compares three reports, of which the page makes one",
    "CUDA_VISIBLE_DEVICES=1 ": "needs two GPUs",
    'hone-run run model.hone --prompt "def main("': GPU,
    "mpirun ": "there is no MPI" if not shutil.which("mpirun") else None,
}
TIMEOUT_SECONDS = 300


def prepare_encoder_decoders(inputs, pieces, folder):
    for kind, name in (("marian", "opus-mt-de-en"), ("whisper", "whisper-tiny")):
        shutil.copytree(inputs / kind, folder / name)
    for path in (inputs / "marian").glob("*.onnx"):
        shutil.copy(path, folder)
    for file, part in zip(("source.spm", "vocab.json"), pieces.read_bytes().rsplit(b"\0", 1)):
        (folder / "opus-mt-de-en" / file).write_bytes(part)
    np.savez(folder / "features.npz", input_features=np.zeros((1, 8, 3000), np.float32))


def prepare_sentence_encoder(model, folder):
    shutil.copy(model, folder / "bert.onnx")
    encoder = folder / "all-MiniLM-L6-v2"
    (encoder / "1_Pooling").mkdir(parents=True)
    shutil.copy(model, encoder)
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"))]
    (encoder / "modules.json").write_text(json.dumps(modules))
    (encoder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    Tokenizer(models.WordLevel({"[UNK]": 0, "text": 1}, unk_token="[UNK]")).save(str(encoder / "tokenizer.json"))
    (folder / "lines.txt").write_text("text\nother\n")


def prepare_vision_model(source, folder):
    """The language model with an encoder, whose features take the place of a question mark."""
    sys.path.insert(0, str(source / "test" / "differential"))
    import feature_models

    (folder / "SmolVLM").mkdir()
    shutil.copy(folder / "tokenizer.json", folder / "SmolVLM")
    token = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id("?")
    feature_models.write(folder / "model.onnx", folder / "SmolVLM", token)
    np.savez(folder / "pixels.npz", pixel_values=np.zeros((1, 3, 8, 8), np.float32))


def prepare(source, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(source / "examples" / "python-lm" / name, folder / name)
    shutil.copy(folder / "model.onnx", folder / "draft.onnx")  # it drafts for itself
    (folder / "prompts.jsonl").write_text('{"category": "code", "prompt": "def main():"}\n{"category": "text", "turns": ["Returns", "and"]}\n')
    points = [dict(kind="structured", parameters=7e6, rate=rate, tokens=tokens, dense_loss=2.04, loss=2.04 + rate**2 * (1 + (tokens / 1e6) ** -0.5))
              for rate in (0.2, 0.4) for tokens in (1e5, 1e6, 1e7)]
    (folder / "points.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    for name, count in (("train.npy", 1024), ("test.npy", 1024), ("tokens.npy", 512)):
        np.save(folder / name, np.random.default_rng(count).integers(2, 2048, count).astype(np.int32))
    np.save(folder / "prompts.npy", np.random.default_rng(3).integers(2, 2048, (3, 32)).astype(np.int32))
    shutil.copytree(source / "test" / "differential", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(source / "docs" / "compression", folder / "docs")
    prepare_encoder_decoders(source / "test" / "Driver" / "Inputs" / "encoder-decoders", source / "test" / "fuzz" / "corpus" / "marian" / "pieces", folder)
    prepare_vision_model(source, folder)
    encoder = source / "test" / "models" / "bert.optimum"
    prepare_sentence_encoder(encoder / "model.onnx", folder)
    subprocess.run(["hone", "compile", encoder / "model.onnx", "-o", folder / "encoder.hone", "--quiet"], check=True)
    with np.load(encoder / "model.npz") as arrays:
        for file, part in (("in.npz", "case0/in/"), ("expected.npz", "case0/out/")):
            np.savez(folder / file, **{key.removeprefix(part): arrays[key] for key in arrays if key.startswith(part)})


def commands(page):
    """Of the page's blocks, without the comments after them."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if command := re.sub(r"(^|\s+)#.*", "", line).strip():
                yield command


def run(command, folder):
    """What went wrong; None where nothing did."""
    if "--inputs" in command:
        command = command.replace("model.hone", "encoder.hone")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env={**os.environ, **allowed}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_SECONDS)
    return None if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr.strip()}"


def main():
    source, folder = map(pathlib.Path, sys.argv[1:3])
    prepare(source, folder)
    used, count, failures = set(), 0, 0
    for page in map(pathlib.Path, sys.argv[3:]):
        for command in commands(page):
            part = next((part for part in LEFT_OUT if part in command), None)
            used.add(part)
            if part and LEFT_OUT[part]:
                print(f"{page.name}: left out, {LEFT_OUT[part]}: {command}")
                continue
            reason = run(command, folder)
            count, failures = count + 1, failures + (reason is not None)
            print(f"{page.name}: {reason or 'ran'}: {command}", flush=True)
    for part in sorted(LEFT_OUT.keys() - used):
        failures += 1
        print(f"no command has '{part}' in it")
    print(f"{count} commands, {failures} fail")
    return 1 if failures else 0


sys.exit(main())
