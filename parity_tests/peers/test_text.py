"""Layers and stacks over text beside those of ``transformers``: CLIP, T5 and BART."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BartConfig, CLIPTextConfig, T5Config
from transformers.models.bart import modeling_bart
from transformers.models.clip import modeling_clip
from transformers.models.t5 import modeling_t5

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    EncoderConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    NormConfig,
    RelativeBiasConfig,
    ScoreConfig,
    TextEmbeddingConfig,
    TransformerDecoderLayerConfig,
)
from parity_tests.components.case import ComponentCase
from parity_tests.support.peers import Peer, Tensors, call_recording, judge_peer, named_stack

B, T, S, D, N, H, F, V, MAX_LEN, LAYERS = 2, 7, 5, 12, 3, 6, 14, 11, 9, 2
KEYS = np.arange(T) < np.array([[T], [4]])
MEMORY_KEYS = np.arange(S) < np.array([[3], [S]])
CAUSAL = ScoreConfig(is_causal=True)
ASKED = {"need_weights": True, "need_hidden_states": True}
RETURNED = {"output_attentions": True, "output_hidden_states": True}
_random = np.random.default_rng(3)
IDS = _random.integers(0, V, (B, T))
X, MEMORY = _random.normal(size=(B, T, D)), _random.normal(size=(B, S, D))


def added(visible: np.ndarray) -> torch.Tensor:
    """Return what the layers add to the scores: 0, or the least number."""
    return torch.where(torch.from_numpy(visible), 0.0, torch.finfo(torch.float64).min)


def clip() -> Peer:
    """Causal, quick GELU, learned positions, keys hidden at the end."""
    theirs = CLIPTextConfig(
        hidden_size=D, num_attention_heads=N, intermediate_size=F, vocab_size=V,
        max_position_embeddings=MAX_LEN, num_hidden_layers=LAYERS, hidden_act="quick_gelu",
        layer_norm_eps=1e-4, attn_implementation="eager",
    )  # fmt: skip
    norm = NormConfig(eps=1e-4)
    config = EncoderConfig(
        layer=BlockConfig(
            attention=AttentionConfig(d_model=D, num_heads=N, score=CAUSAL),
            feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="quick_gelu"),
            norm=norm,
        ),
        num_layers=LAYERS,
        embedding=TextEmbeddingConfig(
            vocab_size=V, d_model=D, max_seq_len=MAX_LEN, num_token_types=0, norm=None
        ),
        final_norm=norm,
    )

    def call(model: Any, inputs: Tensors) -> Tensors:
        found = model(inputs["ids"], attention_mask=torch.from_numpy(KEYS * 1), **RETURNED)
        return named_stack(found.last_hidden_state, found.hidden_states, found.attentions)

    names = {
        "embeddings": "embedding", "token_embedding": "token_embed",
        "position_embedding": "position_embed", "encoder.layers": "layers",
        "self_attn": "attention", "layer_norm1": "attention_norm",
        "layer_norm2": "feed_forward_norm", "mlp": "feed_forward", "fc1": "up_proj",
        "fc2": "down_proj", "final_layer_norm": "final_norm",
    }  # fmt: skip
    case = ComponentCase(config, {"ids": IDS}, ASKED | {"key_mask": KEYS})
    return Peer(lambda: modeling_clip.CLIPTextModel(theirs), case, call, names)


def bart() -> Peer:
    """The decoder layer of Vaswani et al. 2017, with GELU."""
    theirs = BartConfig(
        d_model=D, decoder_attention_heads=N, decoder_ffn_dim=F, activation_function="gelu",
        attn_implementation="eager",
    )  # fmt: skip
    config = TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F, activation="gelu")

    def call(module: Any, inputs: Tensors) -> Tensors:
        output, attended = call_recording(
            module,
            ["self_attn", "encoder_attn"],
            inputs["x"],
            added(KEYS[:, None, None] & np.tri(T, dtype=bool)),
            inputs["memory"],
            added(MEMORY_KEYS[:, None, None]),
        )
        return {"[0]": output, "[1]": attended[0][-1], "[2]": attended[1][-1]}

    names = {
        "self_attn": "attention", "encoder_attn": "cross_attention",
        "self_attn_layer_norm": "attention_norm",
        "encoder_attn_layer_norm": "cross_attention_norm",
        "fc1": "feed_forward.up_proj", "fc2": "feed_forward.down_proj",
        "final_layer_norm": "feed_forward_norm",
    }  # fmt: skip
    options = {"key_mask": KEYS, "memory_mask": MEMORY_KEYS, "need_weights": True}
    case = ComponentCase(config, {"x": X, "memory": MEMORY}, options)
    return Peer(lambda: modeling_bart.BartDecoderLayer(theirs, layer_idx=0), case, call, names)


T5_BIAS = {"num_buckets": 8, "max_distance": 6}
T5_NAMES = {
    "q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj",
    "layer.0.layer_norm": "attention_norm", "layer.0.SelfAttention": "attention",
    "layer.1.EncDecAttention": "cross_attention",
    "DenseReluDense": "feed_forward", "wi": "up_proj", "wi_0": "gate_proj", "wi_1": "up_proj",
    "wo": "down_proj", "relative_attention_bias": "position_bias.bias_embed",
}  # fmt: skip
T5_ENCODER = {"layer.1.feed_forward": "feed_forward", "layer.1.layer_norm": "feed_forward_norm"}
T5_DECODER = {
    "layer.1.layer_norm": "cross_attention_norm",
    "layer.2.feed_forward": "feed_forward",
    "layer.2.layer_norm": "feed_forward_norm",
}


def _t5_config(*, decoder: bool) -> T5Config:
    return T5Config(
        d_model=D, d_kv=H, num_heads=N, d_ff=F, num_layers=LAYERS, vocab_size=V,
        relative_attention_num_buckets=8, relative_attention_max_distance=6,
        layer_norm_epsilon=1e-4, feed_forward_proj="gated-gelu" if decoder else "relu",
        is_decoder=decoder, use_cache=False, attn_implementation="eager",
    )  # fmt: skip


def _t5_layer(*, decoder: bool, bias: bool) -> BlockConfig:
    sizes: dict[str, Any] = {"d_model": D, "num_heads": N, "head_dim": H, "qkv_bias": False}
    own = RelativeBiasConfig(**T5_BIAS, is_bidirectional=not decoder) if bias else None
    cross = AttentionConfig(**sizes, out_bias=False, score=ScoreConfig(scale=1.0))
    hidden: dict[str, Any] = {"d_model": D, "d_ff": F, "bias": False}
    return BlockConfig(
        attention=AttentionConfig(
            **sizes,
            out_bias=False,
            score=ScoreConfig(scale=1.0, is_causal=decoder),
            position_bias=own,
        ),
        cross_attention=cross if decoder else None,
        feed_forward=GatedFeedForwardConfig(**hidden, activation="gelu_tanh")
        if decoder
        else FeedForwardConfig(**hidden, activation="relu"),
        norm=NormConfig(kind="rms", eps=1e-4),
    )


def t5_encoder_layer() -> Peer:
    """No scale in the scores, a bias for the distance both ways, RMS norms, ReLU, no biases."""

    def call(module: Any, inputs: Tensors) -> Tensors:
        output, [attended] = call_recording(
            module, ["layer.0.SelfAttention"], inputs["x"], added(KEYS[:, None, None])
        )
        return {"[output]": output[0], "[attention_weights]": attended[-1]}

    options = {"key_mask": KEYS, "need_weights": True}
    return Peer(
        lambda: modeling_t5.T5Block(_t5_config(decoder=False), True, 0),
        ComponentCase(_t5_layer(decoder=False, bias=True), {"x": X}, options),
        call,
        T5_NAMES | T5_ENCODER,
    )


def t5_decoder_layer() -> Peer:
    """The same, causal, with a memory and a gated network."""

    def call(module: Any, inputs: Tensors) -> Tensors:
        output, attended = call_recording(
            module,
            ["layer.0.SelfAttention", "layer.1.EncDecAttention"],
            inputs["x"],
            added(KEYS[:, None, None] & np.tri(T, dtype=bool)),
            encoder_hidden_states=inputs["memory"],
            encoder_attention_mask=added(MEMORY_KEYS[:, None, None]),
        )
        found = {"[output]": output[0], "[attention_weights]": attended[0][-1]}
        return found | {"[cross_attention_weights]": attended[1][-1]}

    options = {"key_mask": KEYS, "memory_mask": MEMORY_KEYS, "need_weights": True}
    case = ComponentCase(
        _t5_layer(decoder=True, bias=True), {"x": X, "memory": MEMORY}, options, ("memory",)
    )
    return Peer(
        lambda: modeling_t5.T5Block(_t5_config(decoder=True), True, 0),
        case,
        call,
        T5_NAMES | T5_DECODER,
    )


def t5_decoder() -> Peer:
    """All layers share the first one's bias; the last hidden state is before the final norm."""
    config = DecoderConfig(
        layer=_t5_layer(decoder=True, bias=False),
        num_layers=LAYERS,
        embedding=TextEmbeddingConfig(
            vocab_size=V, d_model=D, max_seq_len=None, num_token_types=0, norm=None
        ),
        final_norm=NormConfig(kind="rms", eps=1e-4),
        position_bias=RelativeBiasConfig(**T5_BIAS, is_bidirectional=False),
    )

    def call(model: Any, inputs: Tensors) -> Tensors:
        found, [last] = call_recording(
            model,
            [f"block.{LAYERS - 1}"],
            inputs["ids"],
            attention_mask=torch.from_numpy(KEYS * 1),
            encoder_hidden_states=inputs["memory"],
            encoder_attention_mask=torch.from_numpy(MEMORY_KEYS * 1),
            **RETURNED,
        )
        states = [*found.hidden_states[:-1], last[0]]
        named = named_stack(found.last_hidden_state, states, found.attentions)
        crossed = found.cross_attentions
        return named | {f"[cross_attention_weights][{i}]": part for i, part in enumerate(crossed)}

    first = "block.0.layer.0.SelfAttention.relative_attention_bias"
    names = {first: "position_bias.bias_embed", "block": "layers"} | T5_NAMES | T5_DECODER
    names |= {"final_layer_norm": "final_norm", "embed_tokens": "embedding.token_embed"}
    options = ASKED | {"key_mask": KEYS, "memory_mask": MEMORY_KEYS}
    case = ComponentCase(config, {"ids": IDS, "memory": MEMORY}, options, ("memory",))
    return Peer(lambda: modeling_t5.T5Stack(_t5_config(decoder=True)), case, call, names)


PEERS = {
    "clip": clip(),
    "bart decoder layer": bart(),
    "t5 encoder layer": t5_encoder_layer(),
    "t5 decoder layer": t5_decoder_layer(),
    "t5 decoder": t5_decoder(),
}


@pytest.mark.parametrize("name", PEERS)
def test_as_in_transformers(name):
    judge_peer(PEERS[name])
