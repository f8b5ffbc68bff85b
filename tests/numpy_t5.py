"""T5's encoder and a tower of a dual encoder, by definition, in float64.

Weights have the names of t5x. Reference: Raffel et al., 2020,
https://arxiv.org/abs/1910.10683.
"""

import math

import numpy as np

NUM_BUCKETS = 32
MAX_DISTANCE = 128


class NumpyT5:
    """One encoder.

    Args:
        weights: dict of t5x's names to arrays. Attention kernels have two
            axes, or three with the heads on their own.
        activation: `"gelu"`, the tanh approximation, or `"relu"`.
        encoder: first part of the names. Defaults to `"encoder"`.
    """

    def __init__(self, weights, activation, encoder="encoder"):
        self._weights = {k: np.float64(v) for k, v in weights.items()}
        self._activation = {"gelu": _gelu, "relu": _relu}[activation]
        self._encoder = encoder
        self._heads = len(self._of("relpos_bias.rel_embedding"))

    def hidden_states(self, token_ids, padding_mask):
        """Returns float64 `[batch, seq, hidden_dim]`."""
        own = f"{self._encoder}.token_embedder.embedding"
        shared = "token_embedder.embedding"
        hidden = self._weights[own if own in self._weights else shared][
            np.asarray(token_ids)
        ]
        bias = self._position_bias(hidden.shape[1])
        bias = bias + np.where(padding_mask, 0, -np.inf)[:, None, None, :]
        i = 0
        while f"{self._encoder}.layers_{i}.mlp.wo.kernel" in self._weights:
            layer = f"layers_{i}"
            scale = self._of(f"{layer}.pre_attention_layer_norm.scale")
            hidden = hidden + self._attention(
                f"{layer}.attention", _rms_norm(hidden, scale), bias
            )
            scale = self._of(f"{layer}.pre_mlp_layer_norm.scale")
            hidden = hidden + self._mlp(
                f"{layer}.mlp", _rms_norm(hidden, scale)
            )
            i += 1
        return _rms_norm(hidden, self._of("encoder_norm.scale"))

    def embeddings(self, token_ids, padding_mask, projection):
        """Returns float64 `[batch, dim]`: mean, projection, unit length.

        Args:
            token_ids: int `[batch, seq]`.
            padding_mask: `[batch, seq]`, 1 at real tokens.
            projection: `[hidden_dim, dim]`.
        """
        mask = np.float64(padding_mask)[:, :, None]
        hidden = self.hidden_states(token_ids, padding_mask)
        pooled = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
        projected = pooled @ np.float64(projection)
        return projected / np.linalg.norm(projected, axis=1, keepdims=True)

    def _of(self, name):
        return self._weights[f"{self._encoder}.{name}"]

    def _attention(self, name, hidden, bias):
        width = hidden.shape[-1]
        query, key, value = (
            _split(
                hidden @ self._of(f"{name}.{part}.kernel").reshape(width, -1),
                self._heads,
            )
            for part in ("query", "key", "value")
        )
        # T5 does not divide by the root of the heads' width.
        scores = query @ key.swapaxes(-1, -2) + bias
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores = scores / scores.sum(axis=-1, keepdims=True)
        joined = np.concatenate(list((scores @ value).swapaxes(0, 1)), axis=-1)
        return joined @ self._of(f"{name}.out.kernel").reshape(-1, width)

    def _mlp(self, name, hidden):
        if f"{self._encoder}.{name}.wi.kernel" in self._weights:
            wide = self._activation(hidden @ self._of(f"{name}.wi.kernel"))
        else:
            wide = self._activation(hidden @ self._of(f"{name}.wi_0.kernel"))
            wide = wide * (hidden @ self._of(f"{name}.wi_1.kernel"))
        return wide @ self._of(f"{name}.wo.kernel")

    def _position_bias(self, length):
        table = self._of("relpos_bias.rel_embedding")
        buckets = [
            [position_bucket(key - query) for key in range(length)]
            for query in range(length)
        ]
        return table[:, np.array(buckets)][None]


def position_bucket(distance):
    """Returns the bucket of an attended token's distance, in tokens.

    16 buckets for tokens before (and the token itself), 16 for those behind:
    distances below 8 have their own, the other 8 grow by a factor of
    (128 / 8) ** (1 / 8) each.
    """
    half = NUM_BUCKETS // 2
    exact = half // 2
    size = abs(distance)
    if size >= exact:
        share = math.log(size / exact) / math.log(MAX_DISTANCE / exact)
        # Up to rounding, so that 16 = 8 * 2 does not fall below its bucket.
        size = min(half - 1, exact + int(share * (half - exact) + 1e-9))
    return size + (half if distance > 0 else 0)


def _rms_norm(hidden, scale, epsilon=1e-6):
    mean_square = (hidden**2).mean(axis=-1, keepdims=True)
    return hidden / np.sqrt(mean_square + epsilon) * scale


def _split(hidden, heads):
    batch, length, width = hidden.shape
    split = hidden.reshape(batch, length, heads, width // heads)
    return split.transpose(0, 2, 1, 3)


def _gelu(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def _relu(x):
    return np.maximum(x, 0)
