"""The components in JAX; ``diff`` it with quickstart_torch.py to see what differs."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import nnx

from jax_impl import Encoder, MultiHeadAttention, TransformerEncoderLayer, load_model, save_model
from jax_impl.functional import causal_mask, scaled_dot_product_attention

x = jnp.ones((2, 5, 64))

# An attention layer returns its output and its weights, one (T, S) map per head.
attention = MultiHeadAttention(d_model=64, num_heads=4, rngs=nnx.Rngs(0))
output, weights = attention(x, x, x, causal_mask(5))
print("attention", tuple(output.shape), tuple(weights.shape))

# A mask says who may attend; a query that may attend to nothing gives zeros, never NaN.
hidden = jnp.zeros((5, 5), dtype=bool)
output, weights = scaled_dot_product_attention(x, x, x, mask=hidden)
print("nothing to see", float(output.sum()), float(weights.sum()))

# A new module is in training mode: dropout draws.
layer = TransformerEncoderLayer(d_model=64, num_heads=4, d_ff=256, dropout=0.1, rngs=nnx.Rngs(0))
print("training", tuple(layer(x, rng_key=jax.random.key(0)).shape))
print("evaluation", tuple(layer.eval()(x).shape))

# A folder written by one panel is read by the other.
encoder = Encoder(layer.config, num_layers=2, rngs=nnx.Rngs(0)).eval()
with tempfile.TemporaryDirectory() as folder:
    save_model(encoder, Path(folder) / "encoder")
    again = load_model(Path(folder) / "encoder")
print("saved and loaded", bool((again(x).output == encoder(x).output).all()))
