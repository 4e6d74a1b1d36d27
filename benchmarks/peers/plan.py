# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: every engine on every model at every precision, and how its files are made.

In commands, "@NAME/tool" is a tool of the virtual environment NAME, "{work}" the folder of all files, "{build}" the build
folder of Hone, "{runtime}" that of its runtime for the ISA, "{source}" the repository, and "{peers}" this folder.
"""

import os
from dataclasses import dataclass, field

from isas import Isa
from models import MODELS

PRECISIONS = ("f32", "bf16", "int8", "int4")


@dataclass(frozen=True)
class Step:
    """A command that makes the file or folder `target`, below the work folder, once; once a run where `again`."""

    target: str
    command: tuple
    again: bool = False


@dataclass(frozen=True)
class Row:
    """One engine on one model at one precision. `ours` marks Hone, `capped` engines that keep to the ISA; `unread` and `resident` say
    which bytes a step reads."""

    engine: str
    label: str
    model: str
    precision: str
    command: tuple  # threads are appended
    path: str  # of the model file or folder
    steps: tuple = ()
    ours: bool = False
    unread: int = 0  # bytes of the files that a step does not read: a table beside a head of its own
    resident: float = field(default=1.0)  # bytes read for one of the file, where the engine converts as it loads
    capped: bool = True

    @property
    def name(self):
        return f"{self.model} {self.precision} {self.label}"


def worker(venv, engine, path, *settings):
    return (f"@{venv}/python", "-W", "ignore", "{peers}/worker.py", engine, "{work}/" + path,
            *(part for setting in settings for part in ("--set", setting)))


def rows_of(name, isa):
    model = MODELS[name]
    folder = f"models/{name}"
    made = Step(f"{folder}/config.json", ("@engines/python", "-W", "ignore", "{peers}/models.py", "folder", name,
                                          "{work}/" + folder))
    makers = [hone_rows, ort_rows, openvino_rows, torch_rows]
    if model.decodes:
        makers += [llama_rows] + ([genai_rows] if model.config == "Qwen2Config" else [])
    return [row for maker in makers for row in maker(name, model, folder, made, isa)]


def onnx_step(name, folder, made):
    path = f"onnx/{name}/model.onnx"
    return path, (made, Step(path, ("@engines/python", "-W", "ignore", "{peers}/convert.py", "onnx", "{work}/" + folder,
                                    "{work}/" + path)))


def quantized_steps(name, folder, made, precision):
    source, steps = onnx_step(name, folder, made)
    path = f"onnx/{name}-{precision}/model.onnx"
    return path, (*steps, Step(path, ("@engines/python", "-W", "ignore", "{peers}/convert.py", precision,
                                      "{work}/" + source, "{work}/" + path)))


def table_bytes(model):
    """Bytes of the embedding in float32."""
    return 4 * model.options["vocab_size"] * (model.options.get("hidden_size") or model.options["n_embd"])


def runtime_steps(isa):
    if not isa.caps:
        return ()
    return (Step(f"{isa.label('build')}/bin/hone-run", isa.hone_build(), again=True),)


def hone_rows(name, model, folder, made, isa):
    source, steps = onnx_step(name, folder, made)
    forms = [("f32", "Hone", source, steps, ()), ("bf16", "Hone", source, steps, ("--weights=bf16",)),
             ("int8", "Hone", source, steps, ("--quantize=int8",)), ("int4", "Hone", source, steps, ("--quantize=int4",))]
    for precision, kind in (("int8", "dynamic int8 ONNX"), ("int4", "MatMulNBits ONNX")):
        path, made_from = quantized_steps(name, folder, made, precision)
        forms.append((precision, f"Hone on {kind}", path, made_from, ()))
    for precision, label, path, made_from, options in forms:
        artefact = f"hone/{isa.label(name)}-{label.replace(' ', '-')}-{precision}.hone"
        compiled = Step(artefact, ("{build}/bin/hone", "compile", "{work}/" + path, "-o",
                                                      "{work}/" + artefact, "--quiet", *options, *isa.hone_options()))
        command = (("@engines/python", "{peers}/hone_bench.py", "{runtime}/bin/hone-run", "{work}/" + artefact)
                   if model.decodes else worker("engines", "hone", artefact, "library={runtime}/lib/libhone_rt.so"))
        yield Row("hone", label, name, precision, command, artefact, (*runtime_steps(isa), *made_from, compiled),
                  ours=True)


def not_capped(isa):
    """How a row of onnxruntime says that it uses every ISA of the machine."""
    return (" (ISA not capped)", False) if isa.caps else ("", True)


def ort_rows(name, model, folder, made, isa):
    note, capped = not_capped(isa)
    source, steps = onnx_step(name, folder, made)
    yield Row("onnxruntime", "onnxruntime" + note, name, "f32", worker("engines", "ort", source), source, steps, capped=capped)
    for precision, label in (("int8", "onnxruntime dynamic int8"), ("int4", "onnxruntime MatMulNBits")):
        path, made_from = quantized_steps(name, folder, made, precision)
        yield Row("onnxruntime", label + note, name, precision, worker("engines", "ort", path), path, made_from,
                  unread=table_bytes(model), capped=capped)


def genai_rows(name, model, folder, made, isa):
    del model
    note, capped = not_capped(isa)
    for precision, word in (("f32", "fp32"), ("int4", "int4")):
        path = f"genai/{name}-{word}"
        build = Step(f"{path}/model.onnx", (
            "@engines/python", "-W", "ignore", "-m", "onnxruntime_genai.models.builder", "-i", "{work}/" + folder, "-o",
            "{work}/" + path, "-p", word, "-e", "cpu", "-c", "{work}/cache", "--extra_options", "prune_lm_head=true"))
        yield Row("onnxruntime-genai", "onnxruntime-genai" + note, name, precision, worker("engines", "genai", path), path,
                  (made, build), capped=capped)


def openvino_rows(name, model, folder, made, isa):
    del isa  # a variable says it
    if not model.decodes:
        source, steps = onnx_step(name, folder, made)
        for precision in ("f32", "bf16"):
            yield Row("openvino", "OpenVINO", name, precision,
                      worker("engines", "openvino", source, f"INFERENCE_PRECISION_HINT={precision}"), source, steps)
        return
    for weights, precision, hint in (("fp32", "f32", "f32"), ("fp32", "bf16", "bf16"), ("int8", "int8", "f32"),
                                     ("int8", "int8", "bf16"), ("int4", "int4", "f32"), ("int4", "int4", "bf16")):
        path = f"openvino/{name}-{weights}"
        group = ("--sym", "--group-size", "64") if weights == "int4" else ()
        export = Step(f"{path}/openvino_model.xml", (
            "@optimum/optimum-cli", "export", "openvino", "-m", "{work}/" + folder, "--task", "text-generation-with-past",
            "--weight-format", weights, *group, "{work}/" + path))
        label = "OpenVINO GenAI" + ("" if weights == "fp32" else f", activations {hint}")
        yield Row("openvino", label, name, precision,
                  worker("engines", "openvino", path, f"INFERENCE_PRECISION_HINT={hint}"), path, (made, export),
                  resident=0.5 if (weights, hint) == ("fp32", "bf16") else 1.0)


def torch_rows(name, model, folder, made, isa):
    del isa  # a variable says it
    kind = () if model.decodes else ("kind=encoder",)
    for precision, dtype in (("f32", "float32"), ("bf16", "bfloat16")):
        yield Row("pytorch", "PyTorch", name, precision, worker("engines", "pytorch", folder, f"dtype={dtype}", *kind),
                  folder, (made,), resident=1.0 if precision == "f32" else 0.5)


QUANTIZE = ("import llama_cpp, sys; settings = llama_cpp.llama_model_quantize_default_params(); "
            "settings.ftype = getattr(llama_cpp, 'LLAMA_FTYPE_MOSTLY_' + sys.argv[3]); "
            "sys.exit(llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), settings))")


def llama_rows(name, model, folder, made, isa):
    del model
    venv = isa.label("llama")
    source = f"gguf/{name}-F32.gguf"
    whole = (made, Step(source, (f"@{venv}/python", "{peers}/models.py", "gguf", "{work}/" + folder, "{work}/" + source)))
    yield Row("llama.cpp", "llama.cpp F32", name, "f32", worker(venv, "llama", source), source, whole)
    for precision, form in (("bf16", "F16"), ("bf16", "BF16"), ("int8", "Q8_0"), ("int4", "Q4_0"), ("int4", "Q4_K_M")):
        path = f"gguf/{name}-{form}.gguf"
        steps = (*whole, Step(path, (f"@{venv}/python", "-c", QUANTIZE, "{work}/" + source, "{work}/" + path, form)))
        yield Row("llama.cpp", f"llama.cpp {form}", name, precision, worker(venv, "llama", path), path, steps)


def all_rows(names, isa=Isa("native")):
    return [row for name in names for row in rows_of(name, isa)]


def model_files(path):
    """The files of a model: one with what lies beside it, or those of a folder; tokenizers do not count."""
    path = str(path)
    if os.path.isfile(path):
        return [name for name in (path, path + ".data", path + "_data") if os.path.exists(name)]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if "token" not in name]
