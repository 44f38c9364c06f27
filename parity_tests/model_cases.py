"""The table of attention and block calls as model families make them: one row per combination."""

from itertools import chain

from parity_tests.component_cases import ComponentCase
from parity_tests.model_attention_rows import plain_rows, rotary_rows
from parity_tests.model_block_rows import block_rows
from parity_tests.model_memory_rows import biased_rows, cross_rows, latent_rows, masked_rows

MODEL_CASES: dict[str, ComponentCase] = dict(
    chain(
        plain_rows(),
        rotary_rows(),
        masked_rows(),
        biased_rows(),
        cross_rows(),
        latent_rows(),
        block_rows(),
    )
)

VARIANTS = (
    "bert: bidirectional",
    "gpt2: causal",
    "falcon 7b: multi-query",
    "vit 22b: q/k layer norm per head",
    "longformer: window both ways",
    "attention sinks",
    "llama: rotary",
    "qwen3: q/k norm per head, grouped",
    "olmo2: q/k norm full width",
    "gemma2 local: window, softcap, scale, grouped",
    "cohere: interleaved, grouped",
    "gpt_neox: partial rotary, bias",
    "qwen2.5 1m: yarn scaling",
    "phi3: longrope, long scaling",
    "self, packed segments",
    "t5 encoder: relative bias both ways, no scale",
    "bloom: alibi, 6 heads",
    "mllama cross: width of the memory, q/k norm, grouped",
    "deepseek_v3: q rank",
    "gemma2 block: sandwich",
    "gpt_neox block: parallel",
    "mixtral block: softmax, normalised",
    "whisper decoder block: pre, cross, padding",
)
"""One row of every variant: those that are run uncompiled too."""
