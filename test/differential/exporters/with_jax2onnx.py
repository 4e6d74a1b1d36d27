# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that jax2onnx exports: functions of jax.numpy and modules of flax and equinox."""

import equinox
import jax
import jax.numpy as jnp
import onnx
from flax import nnx
from jax2onnx import to_onnx

import writing
from writing import random

WIDTH, HEADS = 32, 4


def save(path, function, **inputs):
    """Exports a function of arrays, whose first dimension is free where there are several rows, and gives the arrays."""
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in inputs.values()]
    if all(array.ndim > 1 and array.shape[0] == 2 for array in inputs.values()) and all(array.dtype == "float32" for array in inputs.values()):
        shapes = [("B", *array.shape[1:]) for array in inputs.values()]
    onnx.save(to_onnx(function, shapes, input_names=list(inputs)), path)
    return inputs


class Block(nnx.Module):
    """A layer of a transformer, with its norms before."""

    def __init__(self, rngs, causal=False, norm=nnx.LayerNorm, gated=False):
        self.norms = nnx.List([norm(WIDTH, rngs=rngs), norm(WIDTH, rngs=rngs)])
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs), nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)
        self.gate = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs) if gated else None
        self.causal = causal

    def __call__(self, x):
        mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1]), bool)) if self.causal else None
        x = x + self.attention(self.norms[0](x), mask=mask)
        y = self.norms[1](x)
        hidden = nnx.silu(self.gate(y)) * self.up(y) if self.gate else nnx.gelu(self.up(y))
        return x + self.down(hidden)


class Encoder(nnx.Module):
    def __init__(self, rngs, **options):
        self.blocks = nnx.List([Block(rngs, **options), Block(rngs, **options)])
        self.norm = options.get("norm", nnx.LayerNorm)(WIDTH, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Decoder(nnx.Module):
    def __init__(self, rngs):
        self.table = nnx.Embed(64, WIDTH, rngs=rngs)
        self.body = Encoder(rngs, causal=True, norm=nnx.RMSNorm, gated=True)

    def __call__(self, ids):
        return self.table.attend(self.body(self.table(ids)))


class Vision(nnx.Module):
    def __init__(self, rngs):
        self.patches = nnx.Conv(3, WIDTH, (4, 4), strides=(4, 4), rngs=rngs)
        self.body, self.head = Encoder(rngs), nnx.Linear(WIDTH, 10, rngs=rngs)

    def __call__(self, image):
        x = self.patches(image)
        return self.head(self.body(x.reshape(x.shape[0], 16, WIDTH)).mean(axis=1))


class Convolutions(nnx.Module):
    def __init__(self, rngs):
        self.first, self.norm = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.depthwise = nnx.Conv(8, 8, (3, 3), strides=(2, 2), feature_group_count=8, rngs=rngs)
        self.groups, self.head = nnx.GroupNorm(8, num_groups=2, rngs=rngs), nnx.Linear(8, 10, rngs=rngs)

    def __call__(self, image):
        x = nnx.max_pool(nnx.relu(self.norm(self.first(image))), window_shape=(2, 2), strides=(2, 2))
        x = nnx.avg_pool(nnx.silu(self.groups(self.depthwise(x))), window_shape=(2, 2), strides=(1, 1))
        return jax.nn.softmax(self.head(x.mean(axis=(1, 2))), axis=-1)


def encoder(path):
    return save(path, Encoder(nnx.Rngs(0)), x=random(2, 7, WIDTH))


def decoder(path):
    return save(path, Decoder(nnx.Rngs(1)), ids=writing.tokens(2, 9, kind="int32"))


def vision(path):
    return save(path, Vision(nnx.Rngs(2)), image=random(2, 16, 16, 3))


def convolutions(path):
    return save(path, Convolutions(nnx.Rngs(3)), image=random(2, 16, 16, 3))


def equinox_mlp(path):
    model = equinox.nn.MLP(8, 4, 16, 2, key=jax.random.PRNGKey(0))
    return save(path, jax.vmap(model), x=random(2, 8))


def equinox_attention(path):
    model = equinox.nn.MultiheadAttention(HEADS, WIDTH, key=jax.random.PRNGKey(0))
    return save(path, lambda x: model(x, x, x), x=random(7, WIDTH))


def scanned(path):
    """A recurrence that jax.lax.scan runs."""
    w, u = random(8, 16), random(16, 16, seed=1) * 0.2

    def step(state, frame):
        state = jnp.tanh(frame @ w + state @ u)
        return state, state.sum()

    return save(path, lambda x, h: jax.lax.scan(step, h, x), x=random(5, 8), h=random(16))


def gated_recurrence(path):
    """Frames of a voice activity detector through a GRU of equinox, frame by frame."""
    cell = equinox.nn.GRUCell(8, 16, key=jax.random.PRNGKey(0))

    def run(x, h):
        return jax.lax.scan(lambda state, frame: (cell(frame, state),) * 2, h, x)[1]

    return save(path, lambda x, h: jax.nn.sigmoid(run(x, h).mean(axis=1)), x=random(6, 8), h=random(16))


def while_loop(path):
    return save(path, lambda x: jax.lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 2 + 1, x), x=abs(random(4)))


def chosen(path):
    return save(path, lambda x: jax.lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), x=random(4, 8))


def spectrum(path):
    """Power of frames of sound, in decibels."""
    waves = jnp.exp(-2j * jnp.pi * jnp.outer(jnp.arange(32), jnp.arange(17)) / 32)
    real, imaginary = jnp.real(waves), jnp.imag(waves)

    def run(x):
        frames = x.reshape(-1, 32) * jnp.hanning(32)
        power = (frames @ real) ** 2 + (frames @ imaginary) ** 2
        return 10 * jnp.log10(jnp.maximum(power, 1e-10))

    return save(path, run, x=random(256))


def einsum_attention(path):
    """Attention as it is written with einsum, rotary embedding and grouped heads included."""
    weights = {name: jnp.asarray(random(*shape, seed=i)) * 0.2 for i, (name, shape) in enumerate(
        {"q": (WIDTH, 4, 8), "k": (WIDTH, 2, 8), "v": (WIDTH, 2, 8), "o": (4, 8, WIDTH)}.items())}

    def rotate(x):
        angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(4) / 4)
        left, right = jnp.split(x, 2, axis=-1)
        cosine, sine = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
        return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)

    def run(x):
        query, key, value = (jnp.einsum("bsd,dhe->bshe", x, weights[name]) for name in "qkv")
        query, key = rotate(query), rotate(key)
        key, value = jnp.repeat(key, 2, axis=2), jnp.repeat(value, 2, axis=2)
        scores = jnp.einsum("bqhe,bkhe->bhqk", query, key) / 8**0.5
        scores = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), scores, -1e30)
        return jnp.einsum("bhqk,bkhe,hed->bqd", jax.nn.softmax(scores), value, weights["o"])

    return save(path, run, x=random(2, 7, WIDTH))


def sorting(path):
    def run(x):
        values, indices = jax.lax.top_k(x, 3)
        return values, indices, jnp.sort(x), jnp.argmax(x, axis=-1), jnp.cumsum(x, axis=0), jnp.take_along_axis(x, indices, axis=-1)

    return save(path, run, x=random(3, 9))


TRANSFORMERS = {"encoder": (2, 5, 2, 0), "decoder": (2, 5, 2, 0), "vision": (2, 5, 2, 0), "equinox_attention": (1, 0, 0, 0),
                "einsum_attention": (1, 0, 0, 0)}
MODELS = {function.__name__: function for function in (
    encoder, decoder, vision, convolutions, equinox_mlp, equinox_attention, scanned, gated_recurrence, while_loop, chosen, spectrum,
    einsum_attention, sorting)}

if __name__ == "__main__":
    writing.main(MODELS, TRANSFORMERS)
