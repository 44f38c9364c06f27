"""The JAX panel's components inside Flax Linen: ``to_linen`` to train, ``ToLinen`` to infer."""

import jax
import jax.numpy as jnp
from flax import nnx

from jax_impl import TransformerEncoderLayer

x = jax.random.normal(jax.random.key(0), (2, 5, 64))

# A Linen module with Linen's init and apply; dropout draws from the call's own rng_key.
layer = nnx.bridge.to_linen(TransformerEncoderLayer, d_model=64, num_heads=4, d_ff=256)
variables = layer.init(jax.random.key(1), x, rng_key=jax.random.key(2))


def loss_of(params, rng_key):
    """Return a number to make smaller."""
    return jnp.square(layer.apply({**variables, "params": params}, x, rng_key=rng_key)).mean()


gradients = jax.jit(jax.grad(loss_of))(variables["params"], jax.random.key(3))
print("gradients", len(jax.tree.leaves(gradients)))


def in_evaluation(rngs):
    """Return the layer in the mode in which nothing is drawn."""
    return TransformerEncoderLayer(d_model=64, num_heads=4, d_ff=256, rngs=rngs).eval()


layer = nnx.bridge.ToLinen(in_evaluation)
variables = layer.init(jax.random.key(1), x)
print("the same twice", bool((layer.apply(variables, x) == layer.apply(variables, x)).all()))
