"""Both stacks of Whisper beside those of ``transformers``."""

from typing import Any

import numpy as np
import pytest
from transformers import WhisperConfig
from transformers.models.whisper import modeling_whisper

from diptych.spec import (
    AttentionConfig,
    AudioEncoderConfig,
    BlockConfig,
    DecoderConfig,
    FeedForwardConfig,
    NormConfig,
    ScoreConfig,
    TextEmbeddingConfig,
)
from parity_tests.components.case import ComponentCase
from parity_tests.support.peers import Peer, Tensors, call_recording, judge_peer, named_stack

B, BINS, T, S, D, N, F, V, MAX_LEN, LAYERS = 2, 5, 7, 9, 12, 3, 14, 11, 8, 2
THEIRS = WhisperConfig(
    d_model=D, encoder_attention_heads=N, decoder_attention_heads=N, encoder_ffn_dim=F,
    decoder_ffn_dim=F, encoder_layers=LAYERS, decoder_layers=LAYERS, num_mel_bins=BINS,
    max_source_positions=S, max_target_positions=MAX_LEN, vocab_size=V, pad_token_id=V - 1,
    activation_function="gelu", attn_implementation="eager", use_cache=False,
)  # fmt: skip
ASKED = {"need_weights": True, "need_hidden_states": True}
RETURNED = {"output_attentions": True, "output_hidden_states": True}
NAMES = {
    "self_attn": "attention",
    "self_attn_layer_norm": "attention_norm",
    "encoder_attn": "cross_attention",
    "encoder_attn_layer_norm": "cross_attention_norm",
    "fc1": "feed_forward.up_proj",
    "fc2": "feed_forward.down_proj",
    "final_layer_norm": "feed_forward_norm",
    "layer_norm": "final_norm",
}
_random = np.random.default_rng(8)


def _layer(*, decoder: bool) -> BlockConfig:
    sizes: dict[str, Any] = {"d_model": D, "num_heads": N, "qkv_bias": (True, False, True)}
    return BlockConfig(
        attention=AttentionConfig(**sizes, score=ScoreConfig(is_causal=decoder)),
        cross_attention=AttentionConfig(**sizes) if decoder else None,
        feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="gelu"),
    )


def encoder() -> Peer:
    """Two convolutions and learned positions; keys without a bias."""
    config = AudioEncoderConfig(
        num_mel_bins=BINS, layer=_layer(decoder=False), num_layers=LAYERS, max_seq_len=S
    )

    def call(model: Any, inputs: Tensors) -> Tensors:
        found, [last] = call_recording(
            model, [f"layers.{LAYERS - 1}"], inputs["features"], **RETURNED
        )
        states = [*found.hidden_states[:-1], last]  # theirs is after the final norm
        return named_stack(found.last_hidden_state, states, found.attentions)

    names = NAMES | {
        "conv1": "first_conv1d",
        "conv2": "second_conv1d",
        "embed_positions": "position_embed",
    }
    case = ComponentCase(config, {"features": _random.normal(size=(B, BINS, 2 * S))}, ASKED)
    return Peer(lambda: modeling_whisper.WhisperEncoder(THEIRS), case, call, names)


def decoder() -> Peer:
    """Causal, over a memory; the table of positions is longer than the text."""
    config = DecoderConfig(
        layer=_layer(decoder=True),
        num_layers=LAYERS,
        embedding=TextEmbeddingConfig(
            vocab_size=V, d_model=D, max_seq_len=MAX_LEN, num_token_types=0, norm=None
        ),
        final_norm=NormConfig(),
    )

    def call(model: Any, inputs: Tensors) -> Tensors:
        found, [last] = call_recording(
            model,
            [f"layers.{LAYERS - 1}"],
            inputs["ids"],
            encoder_hidden_states=inputs["memory"],
            **RETURNED,
        )
        named = named_stack(
            found.last_hidden_state, [*found.hidden_states[:-1], last], found.attentions
        )
        crossed = found.cross_attentions
        return named | {f"[cross_attention_weights][{i}]": part for i, part in enumerate(crossed)}

    names = NAMES | {
        "embed_tokens": "embedding.token_embed",
        "embed_positions": "embedding.position_embed",
    }
    ids = _random.integers(0, V - 1, (B, T))  # padding takes no gradient there
    given = {"ids": ids, "memory": _random.normal(size=(B, S, D))}
    case = ComponentCase(config, given, ASKED, ("memory",))
    return Peer(lambda: modeling_whisper.WhisperDecoder(THEIRS), case, call, names)


@pytest.mark.parametrize("stack", [encoder, decoder])
def test_as_in_transformers(stack):
    judge_peer(stack())
