"""The table of attention and block calls as model families make them: one row per combination."""

from itertools import chain

from parity_tests.components.case import ComponentCase
from parity_tests.models.attention_rows import plain_rows, rotary_rows
from parity_tests.models.block_rows import block_rows
from parity_tests.models.memory_rows import biased_rows, cross_rows, latent_rows, masked_rows

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

VARIANTS: dict[str, str] = {
    "multi-head": "bert: bidirectional",
    "grouped heads": "llama3: rotary, grouped",
    "multi-query": "falcon 7b: multi-query",
    "width of one head": "siglip: wide heads",
    "width of keys and values": "perceiver: T > S, width of the memory",
    "biases of q, k and v apart": "whisper encoder: k without bias",
    "causal": "gpt2: causal",
    "causal, T < S": "rotary, chunk at an offset",
    "causal, T > S": "rotary, negative offset, rows that see nothing",
    "causal, offset per sample": "rotary, offset per sample",
    "window": "mistral: rotary, grouped, window",
    "window both ways": "longformer: window both ways",
    "prefix-LM": "self, prefix-LM",
    "block-local": "T < S, block-local",
    "segments": "self, packed segments",
    "padding": "T < S, right padding",
    "fully masked rows": "self, mask per head, rows that see nothing",
    "additive bias": "self, additive bias with -inf",
    "scale": "t5 cross: no scale, no biases",
    "softcap": "grok: softcap, scale",
    "sinks": "attention sinks",
    "window, softcap, scale, grouped": "gemma2 local: window, softcap, scale, grouped",
    "sinks, window, bias, yarn": "gpt_oss local: sinks, window, bias, yarn, grouped",
    "q/k norm per head": "qwen3: q/k norm per head, grouped",
    "q/k norm of the width": "olmo2 32b: q/k norm full width, grouped",
    "q/k layer norm": "vit 22b: q/k layer norm per head",
    "q/k norm and memory": "mllama cross: width of the memory, q/k norm, grouped",
    "latent": "deepseek_v3: q rank",
    "latent, scaled rotary": "deepseek_v3: yarn, scale",
    "rotary, half-split": "llama: rotary",
    "rotary, interleaved": "cohere: interleaved, grouped",
    "rotary, partial": "gpt_neox: partial rotary, bias",
    "rotary, linear": "vicuna 16k: linear scaling",
    "rotary, dynamic": "qwen long: dynamic, beyond scaling",
    "rotary, yarn": "deepseek: yarn, mscale scaling",
    "rotary, llama3": "llama3.1: llama3 scaling",
    "rotary, longrope": "phi3: longrope, long scaling",
    "ALiBi": "bloom: alibi, 8 heads, padding",
    "ALiBi, heads no power of two": "bloom: alibi, 6 heads",
    "T5 bias, both ways": "t5 encoder: relative bias both ways, no scale",
    "T5 bias, one way": "t5 decoder: relative bias one way, causal",
    "pre-norm": "gpt2 block: pre",
    "post-norm": "bert block: post, padding",
    "sandwich norm": "gemma2 block: sandwich",
    "branch norm": "olmo2 block: branch, q/k norm",
    "parallel": "gpt_neox block: parallel",
    "parallel, one LayerNorm without bias": "cohere block: parallel, one norm without bias, gated",
    "RMSNorm": "llama block: rms, gated silu",
    "RMSNorm, 1 + w": "gemma1 block: rms 1 + w, gated gelu",
    "layer scale": "dinov2 block: layer scale",
    "cross-attention": "whisper decoder block: pre, cross, padding",
    "mixture, softmax": "mixtral block: softmax, normalised",
    "mixture, softmax of the top": "gpt_oss block: sinks, softmax of the top, clamped",
    "mixture, sigmoid, shared": (
        "deepseek_v3 block: latent, sigmoid routing in groups, shared expert"
    ),
    "mixture, gated shared": "qwen2_moe block: softmax, shared expert with a gate",
}
"""The row that stands for every variant: it is run uncompiled and in the working dtypes too."""
