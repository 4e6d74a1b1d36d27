# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of TensorFlow, most of them of its keras, as tf2onnx writes them."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import onnx
import tensorflow as tf
import tf2onnx
from tensorflow import keras
from tensorflow.keras import layers

import writing
from writing import random

WIDTH, HEADS = 32, 4


def save(path, function, opset=17, **inputs):
    """Exports a function of tensors whose first dimension is free, and gives the arrays."""
    signature = [tf.TensorSpec([None, *array.shape[1:]], array.dtype, name=name) for name, array in inputs.items()]
    call = tf.function(lambda *tensors: function(*tensors))
    model, _ = tf2onnx.convert.from_function(call, input_signature=signature, opset=opset)
    onnx.save(model, path)
    return dict(zip([value.name for value in model.graph.input], inputs.values()))


def keras_model(shape, *parts):
    model = keras.Sequential([keras.Input(shape), *parts])
    return model


def gelu(x):
    """By its approximation: tf2onnx writes Erfc, which ONNX does not have, for the other."""
    return tf.nn.gelu(x, approximate=True)


def attention_block(x, causal=False):
    y = layers.LayerNormalization(epsilon=1e-5)(x)
    x = layers.Add()([x, layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=causal)])
    y = layers.LayerNormalization(epsilon=1e-5)(x)
    return layers.Add()([x, layers.Dense(WIDTH)(layers.Dense(2 * WIDTH, activation=gelu)(y))])


def encoder(path):
    ids = keras.Input((9,), dtype="int32")
    x = layers.Embedding(64, WIDTH)(ids)
    x = attention_block(attention_block(x))
    return save(path, keras.Model(ids, layers.LayerNormalization(epsilon=1e-5)(x)), ids=writing.tokens(2, 9, kind="int32"))


def decoder(path):
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(64, WIDTH)(ids)
    x = attention_block(attention_block(x, causal=True), causal=True)
    model = keras.Model(ids, layers.Dense(64)(layers.LayerNormalization(epsilon=1e-5)(x)))
    return save(path, model, ids=writing.tokens(2, 9, kind="int32"))


def vision(path):
    image = keras.Input((16, 16, 3))
    x = layers.Reshape((16, WIDTH))(layers.Conv2D(WIDTH, 4, strides=4)(image))
    x = layers.LayerNormalization(epsilon=1e-5)(attention_block(attention_block(x)))
    return save(path, keras.Model(image, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling1D()(x))), image=random(2, 16, 16, 3))


def bert(path):
    """As TensorFlow's own code of BERT computes: dense layers over einsum, norms after blocks, an additive mask."""
    weights = {}

    def weight(name, *shape):
        return weights.setdefault(name, tf.constant(random(*shape, seed=len(weights)) / shape[0] ** 0.5))

    def norm(x, name):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, weight(name + "b", WIDTH), weight(name + "g", WIDTH), 1e-5)

    def block(x, mask, name):
        query, key, value = (tf.einsum("abc,cde->abde", x, weight(name + part, WIDTH, HEADS, 8)) for part in "qkv")
        scores = tf.einsum("bfnh,btnh->bnft", query, key) * 8**-0.5 + mask
        rows = tf.einsum("bnft,btnh->bfnh", tf.nn.softmax(scores), value)
        x = norm(x + tf.einsum("abcd,cde->abe", rows, weight(name + "o", HEADS, 8, WIDTH)), name + "n")
        hidden = tf.nn.gelu(tf.einsum("abc,cd->abd", x, weight(name + "u", WIDTH, 64)), approximate=True)
        return norm(x + tf.einsum("abc,cd->abd", hidden, weight(name + "d", 64, WIDTH)), name + "m")

    def run(ids, shown):
        mask = (1 - tf.cast(shown[:, None, None], tf.float32)) * -10000
        x = norm(tf.gather(weight("table", 64, WIDTH), ids), "first")
        return block(block(x, mask, "0"), mask, "1")

    shown = writing.tokens(2, 9, seed=3, below=2, kind="int32")
    shown[:, 0] = 1
    return save(path, run, ids=writing.tokens(2, 9, kind="int32"), shown=shown)


def mobile(path):
    """Inverted residuals, as mobile classifiers have them."""
    image = keras.Input((32, 32, 3))
    x = layers.ReLU(6)(layers.BatchNormalization()(layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)))
    y = layers.ReLU(6)(layers.BatchNormalization()(layers.Conv2D(24, 1, use_bias=False)(x)))
    y = layers.ReLU(6)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(8, 1, use_bias=False)(y))])
    return save(path, keras.Model(image, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x))), image=random(2, 32, 32, 3))


def segmentation(path):
    image = keras.Input((16, 16, 3))
    top = layers.Conv2D(8, 3, padding="same", activation="relu")(image)
    low = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D(2)(top))
    wide = layers.Conv2DTranspose(8, 2, strides=2)(low)
    other = layers.UpSampling2D(interpolation="bilinear")(low)
    return save(path, keras.Model(image, layers.Conv2D(4, 1)(layers.Concatenate()([top, wide, other]))), image=random(2, 16, 16, 3))


def speech_commands(path):
    """A classifier of sound: a spectrogram, convolutions over it."""
    def run(sound):
        frames = tf.reshape(sound[:, :480], [-1, 15, 32]) * tf.signal.hann_window(32)
        spectrum = tf.signal.rfft(frames)
        return (tf.math.real(spectrum) ** 2 + tf.math.imag(spectrum) ** 2)[..., None]

    model = keras_model((15, 17, 1), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(6))
    return save(path, lambda sound: model(run(sound)), sound=random(2, 512))


def lstm(path):
    model = keras_model((9, 8), layers.LSTM(16, return_sequences=True), layers.LSTM(12), layers.Dense(1, activation="sigmoid"))
    return save(path, model, x=random(2, 9, 8))


def both_ways(path):
    model = keras_model((9, 8), layers.Bidirectional(layers.LSTM(16, return_sequences=True)), layers.Bidirectional(layers.GRU(8)), layers.Dense(4))
    return save(path, model, x=random(2, 9, 8))


def gru(path):
    return save(path, keras_model((9, 8), layers.GRU(16, return_sequences=True), layers.Dense(4)), x=random(2, 9, 8))


def simple_rnn(path):
    return save(path, keras_model((9, 8), layers.SimpleRNN(16), layers.Dense(4)), x=random(2, 9, 8))


def text_lines(path):
    image = keras.Input((16, 40, 1))
    x = layers.MaxPooling2D(2)(layers.Conv2D(8, 3, padding="same", activation="relu")(image))
    x = layers.Reshape((20, 64))(layers.Permute((2, 1, 3))(x))
    x = layers.Bidirectional(layers.LSTM(12, return_sequences=True))(x)
    return save(path, keras.Model(image, layers.Dense(20, activation="softmax")(x)), image=random(2, 16, 40, 1))


def causal_convolutions(path):
    """Gated causal convolutions of growing dilation, as WaveNet has them."""
    sound = keras.Input((32, 8))
    x = sound
    for dilation in (1, 2, 4):
        left, right = (layers.Conv1D(8, 2, padding="causal", dilation_rate=dilation, activation=name)(x) for name in ("tanh", "sigmoid"))
        x = layers.Add()([x, layers.Conv1D(8, 1)(layers.Multiply()([left, right]))])
    return save(path, keras.Model(sound, layers.Conv1D(1, 1)(x)), sound=random(2, 32, 8))


def dense_norms(path):
    model = keras_model((12,), layers.Dense(16, activation="selu"), layers.BatchNormalization(), layers.Dense(16, activation="elu"),
                        layers.LayerNormalization(), layers.Dense(16, activation="softplus"), layers.PReLU(), layers.Dense(3))
    return save(path, model, x=random(2, 12))


def old_opset(path):
    """The oldest opset that tf2onnx writes well."""
    model = keras_model((16, 16, 3), layers.Conv2D(8, 3, activation="relu"), layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(5))
    return save(path, model, opset=9, image=random(2, 16, 16, 3))


def while_loop(path):
    def run(x):
        return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y) + x), [tf.constant(0), x])[1]

    return save(path, run, x=random(2, 8))


def indexing(path):
    def run(x):
        values, indices = tf.math.top_k(x, 3)
        return values, indices, tf.gather(x, indices, batch_dims=1), tf.one_hot(indices, 9), tf.cumsum(x, axis=1, exclusive=True), tf.reverse(x, [1])

    return save(path, run, x=random(3, 9))


TRANSFORMERS = {"encoder": (2, 5, 2, 0), "decoder": (2, 5, 2, 0), "vision": (2, 5, 2, 0), "bert": (2, 5, 2, 0)}
MODELS = {function.__name__: function for function in (
    encoder, decoder, vision, bert, mobile, segmentation, speech_commands, lstm, both_ways, gru, simple_rnn, text_lines, causal_convolutions,
    dense_norms, old_opset, while_loop, indexing)}

if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    writing.main(MODELS, TRANSFORMERS)
