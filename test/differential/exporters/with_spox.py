# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that spox builds: transformers as people write them by hand, and models of pipelines for speech and images."""

import numpy as np
import onnx
import spox.opset.ai.onnx.v17 as op
from spox import Tensor, argument, build

import writing
from writing import random

WIDTH, HEADS, HEAD_SIZE = 32, 4, 8


def constant(array):
    return op.const(np.asarray(array))


def weight(*shape, seed):
    return constant(random(*shape, seed=seed) / np.sqrt(shape[0]).astype(np.float32))


def linear(x, outputs, seed, inputs=WIDTH):
    return op.add(op.matmul(x, weight(inputs, outputs, seed=seed)), constant(random(outputs, seed=seed + 1) * np.float32(0.1)))


def heads_of(x):
    return op.transpose(op.reshape(x, constant(np.array([0, 0, HEADS, HEAD_SIZE]))), perm=[0, 2, 1, 3])


def attention(x, seed, mask=None):
    query, key, value = (heads_of(linear(x, WIDTH, seed + 10 * i)) for i in range(3))
    scores = op.div(op.matmul(query, op.transpose(key, perm=[0, 1, 3, 2])), constant(np.float32(HEAD_SIZE**0.5)))
    scores = op.add(scores, mask) if mask is not None else scores
    rows = op.transpose(op.matmul(op.softmax(scores, axis=-1), value), perm=[0, 2, 1, 3])
    return linear(op.reshape(rows, constant(np.array([0, 0, WIDTH]))), WIDTH, seed + 40)


def norm(x, seed):
    return op.layer_normalization(x, constant(1 + random(WIDTH, seed=seed) * np.float32(0.1)), constant(random(WIDTH, seed=seed + 1)))[0]


def norm_in_parts(x, seed):
    centred = op.sub(x, op.reduce_mean(x, axes=[-1]))
    variance = op.reduce_mean(op.mul(centred, centred), axes=[-1])
    normed = op.div(centred, op.sqrt(op.add(variance, constant(np.float32(1e-5)))))
    return op.add(op.mul(normed, constant(1 + random(WIDTH, seed=seed) * np.float32(0.1))), constant(random(WIDTH, seed=seed + 1)))


def rms_norm(x, seed):
    scale = op.reciprocal(op.sqrt(op.add(op.reduce_mean(op.pow(x, constant(np.float32(2))), axes=[-1]), constant(np.float32(1e-6)))))
    return op.mul(op.mul(x, scale), constant(1 + random(WIDTH, seed=seed) * np.float32(0.1)))


def gelu(x):
    return op.mul(op.mul(x, constant(np.float32(0.5))), op.add(op.erf(op.div(x, constant(np.float32(2**0.5)))), constant(np.float32(1))))


def mlp(x, seed):
    return linear(gelu(linear(x, 2 * WIDTH, seed)), WIDTH, seed + 10, 2 * WIDTH)


def gated_mlp(x, seed):
    gate = linear(x, 2 * WIDTH, seed)
    return linear(op.mul(op.mul(gate, op.sigmoid(gate)), linear(x, 2 * WIDTH, seed + 20)), WIDTH, seed + 10, 2 * WIDTH)


def embed(ids, seed):
    return op.gather(constant(random(64, WIDTH, seed=seed)), ids)


def save(path, inputs, outputs):
    onnx.save(build(inputs, outputs), path)


def encoder(path):
    ids, padding = argument(Tensor(np.int64, ("batch", "sequence"))), argument(Tensor(np.int64, ("batch", "sequence")))
    shown = op.cast(op.unsqueeze(padding, constant(np.array([1, 2]))), to=np.float32)
    mask = op.mul(op.sub(constant(np.float32(1)), shown), constant(np.float32(-10000)))
    x = norm(embed(ids, 1), 3)
    for layer in (100, 200):
        x = norm(op.add(x, attention(x, layer, mask)), layer + 50)
        x = norm_in_parts(op.add(x, mlp(x, layer + 60)), layer + 80)
    save(path, {"ids": ids, "padding": padding}, {"states": x})
    shown = np.ones((2, 7), np.int64)
    shown[1, 5:] = 0
    return {"ids": writing.tokens(2, 7), "padding": shown}


def decoder(path):
    ids = argument(Tensor(np.int64, ("batch", "sequence")))
    length = op.gather(op.shape(ids), constant(np.array([1])))
    square = op.expand(constant(np.float32(-1e9)), op.concat([length, length], axis=0))
    mask = op.trilu(square, constant(np.int64(1)), upper=1)
    x = embed(ids, 1)
    for layer in (100, 200):
        x = op.add(x, attention(rms_norm(x, layer + 50), layer, mask))
        x = op.add(x, gated_mlp(rms_norm(x, layer + 60), layer + 70))
    logits = op.matmul(rms_norm(x, 5), weight(WIDTH, 64, seed=6))
    save(path, {"ids": ids}, {"logits": logits})
    return {"ids": writing.tokens(2, 9)}


def vision(path):
    image = argument(Tensor(np.float32, ("batch", 3, 16, 16)))
    patches = op.conv(image, weight(WIDTH, 3, 4, 4, seed=1), constant(random(WIDTH, seed=2)), strides=[4, 4])
    x = op.transpose(op.reshape(patches, constant(np.array([0, WIDTH, -1]))), perm=[0, 2, 1])
    x = op.add(x, constant(random(16, WIDTH, seed=3)))
    for layer in (100, 200):
        x = op.add(x, attention(norm(x, layer + 50), layer))
        x = op.add(x, mlp(norm(x, layer + 60), layer + 70))
    pooled = op.reduce_mean(norm(x, 5), axes=[1], keepdims=0)
    save(path, {"image": image}, {"classes": op.softmax(linear(pooled, 10, 7), axis=-1)})
    return {"image": random(2, 3, 16, 16)}


def einsum_attention(path):
    """Attention as Einsum with weights of heads, keys that heads share, and a mask of a fixed length."""
    x = argument(Tensor(np.float32, ("batch", 7, WIDTH)))

    def project(heads, seed):
        bias = constant(random(heads, HEAD_SIZE, seed=seed + 1) * np.float32(0.1))
        return op.add(op.einsum([x, weight(WIDTH, heads, HEAD_SIZE, seed=seed)], equation="bsd,dhe->bshe"), bias)

    query = op.reshape(project(HEADS, 1), constant(np.array([0, 0, HEADS, HEAD_SIZE])))
    key, value = (op.expand(op.unsqueeze(project(HEADS // 2, seed), constant(np.array([3]))), constant(np.array([1, 1, 1, 2, 1]))) for seed in (3, 5))
    key, value = (op.reshape(rows, constant(np.array([0, 0, HEADS, HEAD_SIZE]))) for rows in (key, value))
    scores = op.mul(op.einsum([query, key], equation="bqhe,bkhe->bhqk"), constant(np.float32(HEAD_SIZE**-0.5)))
    seen = constant(np.tril(np.ones((7, 7), bool)))
    shares = op.softmax(op.where(seen, scores, constant(np.float32(-1e30))), axis=-1)
    out = op.einsum([shares, value, weight(HEADS, HEAD_SIZE, WIDTH, seed=7)], equation="bhqk,bkhe,hed->bqd")
    save(path, {"x": x}, {"out": out})
    return {"x": random(2, 7, WIDTH)}


def masked_shares(path):
    """Attention that hides keys after the softmax and divides what is left by its sum; the keys are the product's rows."""
    x, seen = argument(Tensor(np.float32, ("batch", "sequence", WIDTH))), argument(Tensor(np.bool_, ("batch", 1, "sequence", "sequence")))
    query, key, value = (heads_of(linear(x, WIDTH, seed)) for seed in (1, 3, 5))
    scores = op.transpose(op.matmul(key, op.transpose(query, perm=[0, 1, 3, 2])), perm=[0, 1, 3, 2])
    shares = op.softmax(op.mul(scores, constant(np.float32(HEAD_SIZE**-0.5))), axis=-1)
    kept = op.mul(shares, op.cast(seen, to=np.float32))
    total = op.reduce_sum(kept, constant(np.array([-1])))
    some = op.greater(total, constant(np.float32(0)))
    shares = op.div(kept, op.where(some, total, constant(np.float32(1))))
    rows = op.transpose(op.matmul(shares, value), perm=[0, 2, 1, 3])
    save(path, {"x": x, "seen": seen}, {"out": linear(op.reshape(rows, constant(np.array([0, 0, WIDTH]))), WIDTH, 7)})
    shown = random(2, 1, 6, 6, seed=9) > 0
    shown[0, 0, 2] = False
    return {"x": random(2, 6, WIDTH), "seen": shown}


def convolution(x, outputs, inputs, seed, kernel=3, **options):
    filters = constant(random(outputs, inputs // options.get("group", 1), kernel, kernel, seed=seed) * np.float32(0.2))
    return op.conv(x, filters, constant(random(outputs, seed=seed + 1)), pads=[kernel // 2] * 4, **options)


def batch_norm(x, channels, seed):
    """As factors and terms: spox gives BatchNormalization outputs of training."""
    return op.add(op.mul(x, constant(random(channels, 1, 1, seed=seed))), constant(random(channels, 1, 1, seed=seed + 1)))


def classifier(path):
    """Depthwise and pointwise convolutions, squeeze and excitation, and a head."""
    image = argument(Tensor(np.float32, ("batch", 3, 24, 24)))
    x = op.relu(batch_norm(convolution(image, 16, 3, 1, strides=[2, 2]), 16, 3))
    y = op.hard_swish(batch_norm(convolution(x, 16, 16, 10, group=16), 16, 12))
    gate = op.relu(convolution(op.global_average_pool(y), 4, 16, 20, 1))
    y = op.mul(y, op.hard_sigmoid(convolution(gate, 16, 4, 22, 1), alpha=1 / 6, beta=0.5))
    x = op.add(x, convolution(y, 16, 16, 24, 1))
    x = op.max_pool(op.concat([x, op.average_pool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])], axis=1), kernel_shape=[2, 2], strides=[2, 2])[0]
    rows = op.flatten(op.global_average_pool(x), axis=1)
    save(path, {"image": image}, {"classes": op.softmax(linear(rows, 10, 30, 32), axis=1)})
    return {"image": random(2, 3, 24, 24)}


def segmentation(path):
    """A U-Net of one level, which is enlarged by Resize."""
    image = argument(Tensor(np.float32, ("batch", 3, "height", "width")))
    top = op.relu(convolution(image, 8, 3, 1))
    low = op.relu(convolution(op.max_pool(top, kernel_shape=[2, 2], strides=[2, 2])[0], 16, 8, 3))
    wide = op.resize(low, None, constant(np.array([1, 1, 2, 2], np.float32)), mode="linear", coordinate_transformation_mode="half_pixel")
    both = op.concat([top, wide], axis=1)
    save(path, {"image": image}, {"mask": op.arg_max(convolution(both, 4, 24, 5, 1), axis=1, keepdims=0), "scores": convolution(both, 4, 24, 5, 1)})
    return {"image": random(1, 3, 16, 20)}


def recurrent(x, kind, hidden, inputs, seed, both=False, state=None):
    gates, ways = {"lstm": 4, "gru": 3, "rnn": 1}[kind], 2 if both else 1
    arrays = [constant(random(ways, gates * hidden, size, seed=seed + i) * np.float32(0.3)) for i, size in enumerate((inputs, hidden))]
    bias = constant(random(ways, 2 * gates * hidden, seed=seed + 2) * np.float32(0.1))
    direction = {"direction": "bidirectional"} if both else {}
    return getattr(op, kind)(x, *arrays, bias, hidden_size=hidden, **direction, **(state or {}))


def voice_activity(path):
    """A short-time spectrum by convolution, and an LSTM whose state goes in and out."""
    sound, hidden, cell = (argument(Tensor(np.float32, shape)) for shape in (("batch", "samples"), (1, "batch", 16), (1, "batch", 16)))
    spectrum = op.conv(op.unsqueeze(sound, constant(np.array([1]))), constant(random(32, 1, 64, seed=1)), strides=[32])
    power = op.log(op.add(op.add(op.mul(spectrum, spectrum), constant(np.float32(1))), constant(np.float32(1e-6))))
    frames = op.transpose(op.relu(op.conv(power, constant(random(16, 32, 3, seed=2) * np.float32(0.1)), pads=[1, 1])), perm=[2, 0, 1])
    states, last, cells = recurrent(frames, "lstm", 16, 16, 5, state={"initial_h": hidden, "initial_c": cell})
    rows = op.squeeze(states, constant(np.array([1])))
    speech = op.sigmoid(op.add(op.matmul(rows, weight(16, 1, seed=9)), constant(np.float32(0.1))))
    save(path, {"sound": sound, "h": hidden, "c": cell}, {"speech": op.reduce_mean(speech, axes=[0, 2], keepdims=0), "hn": last, "cn": cells})
    return {"sound": random(2, 512), "h": random(1, 2, 16, seed=1), "c": random(1, 2, 16, seed=2)}


def text_lines(path):
    """Recognition of text: columns of a convolution, both ways through a GRU, and the best class of each."""
    image = argument(Tensor(np.float32, ("batch", 1, 16, "width")))
    x = op.max_pool(op.relu(convolution(image, 8, 1, 1)), kernel_shape=[2, 2], strides=[2, 2])[0]
    x = op.relu(batch_norm(convolution(x, 16, 8, 3), 16, 5))
    columns = op.squeeze(op.reduce_mean(x, axes=[2]), constant(np.array([2])))
    states, _ = recurrent(op.transpose(columns, perm=[2, 0, 1]), "gru", 12, 16, 20, both=True, state={"linear_before_reset": 1})
    rows = op.reshape(op.transpose(states, perm=[2, 0, 1, 3]), constant(np.array([0, 0, 24])))
    classes = op.log_softmax(linear(rows, 20, 30, 24), axis=-1)
    save(path, {"image": image}, {"log_probabilities": classes, "best": op.arg_max(classes, axis=-1, keepdims=0)})
    return {"image": random(2, 1, 16, 40)}


def vocoder(path):
    """Transposed convolutions with residual blocks of dilated ones, from frames to sound."""
    frames = argument(Tensor(np.float32, ("batch", 8, "frames")))
    x = op.conv(frames, constant(random(16, 8, 7, seed=1) * np.float32(0.1)), pads=[3, 3])
    for seed, channels in ((10, 8), (20, 4)):
        x = op.leaky_relu(x, alpha=0.1)
        x = op.conv_transpose(x, constant(random(2 * channels, channels, 8, seed=seed) * np.float32(0.1)), strides=[4], pads=[2, 2])
        for dilation in (1, 3):
            filters = constant(random(channels, channels, 3, seed=seed + dilation) * np.float32(0.2))
            x = op.add(x, op.conv(op.leaky_relu(x, alpha=0.1), filters, dilations=[dilation], pads=[dilation, dilation]))
    sound = op.tanh(op.conv(op.leaky_relu(x), constant(random(1, 4, 7, seed=30)), pads=[3, 3]))
    save(path, {"frames": frames}, {"sound": sound})
    return {"frames": random(2, 8, 11)}


def counted_loop(path):
    """A Loop that collects what it computes, as a greedy search does."""
    start, steps = argument(Tensor(np.float32, ("batch", 8))), argument(Tensor(np.int64, (1,)))
    matrix = weight(8, 8, seed=1)

    def body(_, __, x):
        y = op.tanh(op.matmul(x, matrix))
        return op.const(np.array([True])), y, op.reduce_sum(y, constant(np.array([1])), keepdims=0)

    last, sums = op.loop(steps, op.const(np.array([True])), v_initial=[start], body=body)
    save(path, {"start": start, "steps": steps}, {"last": last, "sums": sums})
    return {"start": random(2, 8), "steps": np.array([5], np.int64)}


def chosen_branch(path):
    x, flag = argument(Tensor(np.float32, ("rows", 8))), argument(Tensor(np.bool_, ()))
    (y,) = op.if_(flag, then_branch=lambda: [linear(x, 4, 1, 8)], else_branch=lambda: [op.slice(x, constant(np.array([0])), constant(np.array([4])), constant(np.array([1])))])
    save(path, {"x": x, "flag": flag}, {"y": y})
    return {"x": random(3, 8), "flag": np.array(False)}


def group_norms(path):
    """Blocks of an image generator: convolutions with norms of groups of channels in parts."""
    image = argument(Tensor(np.float32, ("batch", 8, 12, 12)))
    x = image
    for seed in (10, 20):
        rows = op.reshape(x, constant(np.array([0, 4, -1])))
        rows = op.instance_normalization(rows, constant(np.ones(4, np.float32)), constant(np.zeros(4, np.float32)))
        y = op.add(op.mul(op.reshape(rows, op.shape(x)), constant(random(1, 8, 1, 1, seed=seed))), constant(random(1, 8, 1, 1, seed=seed + 1)))
        x = op.add(x, convolution(op.mul(y, op.sigmoid(y)), 8, 8, seed + 2))
    save(path, {"image": image}, {"out": x})
    return {"image": random(2, 8, 12, 12)}


def boxes(path):
    """The last part of a detector: scores and boxes, of which the best remain."""
    features = argument(Tensor(np.float32, (1, 8, 6, 6)))
    heads = op.reshape(convolution(features, 6, 8, 1, 1), constant(np.array([1, 6, 36])))
    corners = op.transpose(op.sigmoid(op.slice(heads, constant(np.array([0])), constant(np.array([4])), constant(np.array([1])))), perm=[0, 2, 1])
    scores = op.sigmoid(op.slice(heads, constant(np.array([4])), constant(np.array([6])), constant(np.array([1]))))
    best = op.top_k(op.reduce_max(scores, axes=[1], keepdims=0), constant(np.array([5])), axis=1)
    kept = op.non_max_suppression(corners, scores, constant(np.array([3])), constant(np.array([0.5], np.float32)), constant(np.array([0.2], np.float32)), center_point_box=1)
    save(path, {"features": features}, {"kept": kept, "values": best[0], "indices": best[1]})
    return {"features": random(1, 8, 6, 6)}


TRANSFORMERS = {"encoder": (2, 5, 2, 0), "decoder": (2, 5, 2, 0), "vision": (2, 5, 2, 0), "einsum_attention": (1, 0, 0, 0), "masked_shares": (1, 0, 0, 0)}
MODELS = {function.__name__: function for function in (
    encoder, decoder, vision, einsum_attention, masked_shares, classifier, segmentation, voice_activity, text_lines, vocoder, counted_loop, chosen_branch, group_norms, boxes)}

if __name__ == "__main__":
    writing.main(MODELS, TRANSFORMERS)
