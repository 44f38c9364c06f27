"""Train a small encoder to sort digits, in PyTorch; ``diff`` it with train_jax.py."""

import numpy as np
import torch

from diptych.spec import TextEmbeddingConfig, TransformerEncoderLayerConfig
from torch_impl import Encoder

VOCAB, LENGTH, BATCH, STEPS = 10, 6, 64, 300
draw = np.random.default_rng(0)

torch.manual_seed(0)
model = Encoder(
    TransformerEncoderLayerConfig(d_model=32, num_heads=4, d_ff=64, norm_placement="pre"),
    num_layers=2,
    embedding=TextEmbeddingConfig(vocab_size=VOCAB, d_model=32, max_seq_len=LENGTH),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def loss_of(model, ids):
    """Return the mean cross-entropy of the sorted digits, read out by the token embedding."""
    hidden = model(ids).output
    logits = model.embedding.token_embed.attend(hidden)
    sorted_ids = torch.sort(ids, dim=-1).values
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), sorted_ids.flatten())


for step in range(STEPS + 1):
    ids = torch.from_numpy(draw.integers(0, VOCAB, (BATCH, LENGTH)))
    loss = loss_of(model, ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

test = torch.from_numpy(draw.integers(0, VOCAB, (1, LENGTH)))
hidden = model.eval()(test).output
guess = model.embedding.token_embed.attend(hidden).argmax(-1)
print("sort", test[0].tolist(), "->", guess[0].tolist())
