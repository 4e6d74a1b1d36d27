# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of paddle as paddle2onnx writes them, among them those that a pipeline for reading text is made of."""

import onnx
import paddle
from paddle import nn
from paddle.static import InputSpec
from paddle.vision import models

import writing
from writing import random

WIDTH, HEADS = 32, 4


def save(path, layer, opset=17, free=(0,), **inputs):
    """Exports a layer whose dimensions `free` are so, and gives the arrays."""
    layer.eval()
    specs = [InputSpec([None if axis in free else size for axis, size in enumerate(array.shape)], str(array.dtype), name)
             for name, array in inputs.items()]
    paddle.onnx.export(layer, str(path.with_suffix("")), input_spec=specs, opset_version=opset)
    names = [value.name for value in onnx.load(path).graph.input]
    return dict(zip(names, inputs.values()))


class Function(nn.Layer):
    """A layer of parts and a function of them."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.function(self, x)


def encoder_of(before):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0, activation="gelu", normalize_before=before)
    return nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH) if before else None)


def encoder(path):
    model = Function(lambda self, ids: self.body(self.norm(self.table(ids))), table=nn.Embedding(64, WIDTH), norm=nn.LayerNorm(WIDTH), body=encoder_of(False))
    return save(path, model, free=(0, 1), ids=writing.tokens(2, 9))


def ernie(path):
    """An encoder with a mask of padding, which is made of the ids."""
    def run(self, ids):
        mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        return self.body(self.table(ids), mask).mean(axis=1)

    return save(path, Function(run, table=nn.Embedding(64, WIDTH), body=encoder_of(True)), free=(0, 1), ids=writing.tokens(2, 9))


def decoder(path):
    def run(self, ids):
        length = paddle.shape(ids)[1]
        mask = paddle.triu(paddle.full([length, length], -1e9), 1)
        return self.head(self.body(self.table(ids), mask))

    model = Function(run, table=nn.Embedding(64, WIDTH), body=encoder_of(True), head=nn.Linear(WIDTH, 64))
    return save(path, model, free=(0, 1), ids=writing.tokens(2, 9))


def vision(path):
    def run(self, image):
        x = self.patches(image).flatten(2).transpose([0, 2, 1])
        return self.head(self.body(x).mean(axis=1))

    model = Function(run, patches=nn.Conv2D(3, WIDTH, 4, stride=4), body=encoder_of(True), head=nn.Linear(WIDTH, 10))
    return save(path, model, image=random(2, 3, 16, 16))


def resnet(path):
    return save(path, models.resnet18(num_classes=10), image=random(1, 3, 32, 32))


def mobilenet_v1(path):
    return save(path, models.mobilenet_v1(scale=0.25, num_classes=10), image=random(1, 3, 32, 32))


def mobilenet_v2(path):
    return save(path, models.mobilenet_v2(scale=0.25, num_classes=10), image=random(1, 3, 32, 32))


def mobilenet_v3(path):
    return save(path, models.mobilenet_v3_small(scale=0.5, num_classes=10), image=random(1, 3, 32, 32))


def shufflenet(path):
    return save(path, models.shufflenet_v2_x0_25(num_classes=10), image=random(1, 3, 32, 32))


def squeezenet(path):
    return save(path, models.squeezenet1_1(num_classes=10), image=random(1, 3, 64, 64))


def text_boxes(path):
    """A detector of text: features of two sizes are enlarged and joined, then sharpened by transposed convolutions."""
    def run(self, image):
        top = nn.functional.relu(self.top(image))
        low = nn.functional.hardswish(self.low(top))
        joined = paddle.concat([top, nn.functional.interpolate(low, size=[16, 24], mode="nearest")], axis=1)
        return nn.functional.sigmoid(self.wide(self.norm(joined)))

    model = Function(run, top=nn.Conv2D(3, 8, 3, stride=2, padding=1), low=nn.Conv2D(8, 8, 3, stride=2, padding=1), norm=nn.BatchNorm2D(16),
                     wide=nn.Conv2DTranspose(16, 1, 2, stride=2))
    return save(path, model, image=random(1, 3, 32, 48))


def text_lines(path):
    """A recogniser of text: convolutions, a layer of LSTMs both ways, and classes of columns."""
    def run(self, image):
        columns = nn.functional.relu(self.convolution(image)).mean(axis=2).transpose([0, 2, 1])
        return nn.functional.softmax(self.head(self.recurrent(columns)[0]), axis=2)

    model = Function(run, convolution=nn.Conv2D(3, 16, 3, stride=2, padding=1), recurrent=nn.LSTM(16, 12, direction="bidirect"), head=nn.Linear(24, 20))
    return save(path, model, image=random(2, 3, 16, 40))


def gru(path):
    return save(path, Function(lambda self, x: self.body(x)[0], body=nn.GRU(8, 12, num_layers=2)), x=random(2, 7, 8))


def simple_rnn(path):
    return save(path, Function(lambda self, x: self.body(x)[0], body=nn.SimpleRNN(8, 12)), x=random(2, 7, 8))


def vocoder(path):
    def run(self, x):
        x = nn.functional.leaky_relu(self.first(x), 0.1)
        return nn.functional.tanh(self.last(nn.functional.leaky_relu(self.wide(x), 0.1)))

    model = Function(run, first=nn.Conv1D(8, 16, 7, padding=3), wide=nn.Conv1DTranspose(16, 8, 8, stride=4, padding=2), last=nn.Conv1D(8, 1, 7, padding=3))
    return save(path, model, x=random(2, 8, 11))


def norms(path):
    def run(self, x):
        x = nn.functional.silu(self.groups(x))
        return nn.functional.mish(self.instances(x))

    return save(path, Function(run, groups=nn.GroupNorm(2, 8), instances=nn.InstanceNorm2D(8)), x=random(2, 8, 6, 6))


def indexing(path):
    def run(_, x):
        values, indices = paddle.topk(x, 3)
        return values, indices, paddle.argsort(x), paddle.cumsum(x, axis=1), paddle.nn.functional.pad(x, [1, 2]), paddle.where(x > 0, x, -x)

    return save(path, Function(run), x=random(3, 9))


def old_opset(path):
    return save(path, nn.Sequential(nn.Conv2D(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 4)), opset=9, image=random(2, 3, 8, 8))


TRANSFORMERS = {"encoder": (2, 5, 2, 0), "ernie": (2, 5, 2, 0), "decoder": (2, 5, 2, 0), "vision": (2, 5, 2, 0)}
MODELS = {function.__name__: function for function in (
    encoder, ernie, decoder, vision, resnet, mobilenet_v1, mobilenet_v2, mobilenet_v3, shufflenet, squeezenet, text_boxes, text_lines, gru,
    simple_rnn, vocoder, norms, indexing, old_opset)}

if __name__ == "__main__":
    paddle.seed(0)
    writing.main(MODELS, TRANSFORMERS)
