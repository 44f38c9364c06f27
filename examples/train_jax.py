"""Train a small encoder to sort digits, in JAX; ``diff`` it with train_torch.py."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from diptych.spec import TextEmbeddingConfig, TransformerEncoderLayerConfig
from jax_impl import Encoder

VOCAB, LENGTH, BATCH, STEPS = 10, 6, 64, 300
draw = np.random.default_rng(0)

model = Encoder(
    TransformerEncoderLayerConfig(d_model=32, num_heads=4, d_ff=64, norm_placement="pre"),
    num_layers=2,
    embedding=TextEmbeddingConfig(vocab_size=VOCAB, d_model=32, max_seq_len=LENGTH),
    rngs=nnx.Rngs(0),
)
optimizer = optax.adamw(3e-3, weight_decay=1e-2)


def loss_of(model, ids, rng_key):
    """Return the mean cross-entropy of the sorted digits, read out by the token embedding."""
    hidden = model(ids, rng_key=rng_key).output
    logits = model.embedding.token_embed.attend(hidden)
    sorted_ids = jnp.sort(ids, axis=-1)
    return optax.softmax_cross_entropy_with_integer_labels(logits, sorted_ids).mean()


@jax.jit
def train_step(model, state, ids, rng_key):
    """Return the model and the optimizer state after one step, and the loss before it."""
    loss, gradients = jax.value_and_grad(loss_of)(model, ids, rng_key)
    updates, state = optimizer.update(gradients, state, model)
    return optax.apply_updates(model, updates), state, loss


state = optimizer.init(model)
for step in range(STEPS + 1):
    ids = jnp.asarray(draw.integers(0, VOCAB, (BATCH, LENGTH), np.int32))
    model, state, loss = train_step(model, state, ids, jax.random.key(step))
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

test = jnp.asarray(draw.integers(0, VOCAB, (1, LENGTH), np.int32))
hidden = model.eval()(test).output
guess = model.embedding.token_embed.attend(hidden).argmax(-1)
print("sort", test[0].tolist(), "->", guess[0].tolist())
