"""Gemma 3's text model (Kamath et al. 2025) as ``transformers`` stores it: two rotations."""

from typing import Any

from ...spec import AttentionConfig, BlockConfig, DecoderConfig, QKNormConfig, RotaryConfig
from .. import transformers_settings as hf
from ..rope import read_rotary, rotary_object
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import FULL, SLIDING, expect, read_decoder
from . import parts
from .family import DecoderFamily
from .gemma import GEMMA_FIXED, embed_scale
from .gemma2 import GEMMA2_SETTINGS, SANDWICH, read_score, write_gemma2

_THETAS = {FULL: 1e6, SLIDING: 1e4}


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values, unit_offset=True)
    pattern = values["sliding_window_pattern"] or values["_sliding_window_pattern"]
    num_layers = require(values, "num_hidden_layers")
    types = [SLIDING if (i + 1) % pattern else FULL for i in range(num_layers)]
    windows = parts.read_windows(values, types)
    layers = []
    for window in windows:
        kind = FULL if window is None else SLIDING
        layer = BlockConfig(
            attention=parts.read_attention(
                values,
                score=read_score(values),
                rotary=read_rotary(
                    _old_spelling(values, kind),
                    parts.head_dim(values),
                    theta=_THETAS[kind],
                    layer_type=kind,
                ),
                qk_norm=QKNormConfig(norm=norm),
            ),
            feed_forward=parts.read_feed_forward(values, activation="hidden_activation"),
            norm=norm,
            norm_placement="sandwich",
        )
        layers.append(parts.with_window(layer, window))
    return read_decoder(
        values,
        layers,
        norm=norm,
        embed_scale=embed_scale(values),
        softcap=values["final_logit_softcapping"],
    )


def _old_spelling(values: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the settings of one type's rotation where the old spelling gives them."""
    if values["rope_parameters"]:
        return values
    if kind == FULL:
        return values
    return values | {"rope_theta": values["rope_local_base_freq"], "rope_scaling": None}


def _write(config: DecoderConfig) -> dict[str, Any]:
    settings = write_gemma2(config)
    rotaries: dict[str, RotaryConfig] = {}
    width = expect(config.layers[0].attention, AttentionConfig).sizes[2]
    for layer in config.layers:
        kind = FULL if layer.attention.score.window is None else SLIDING
        rotaries[kind] = expect(layer.attention.rotary, RotaryConfig)
    objects = {kind: rotary_object(rotary, width) for kind, rotary in rotaries.items()}
    full = rotaries.get(FULL)
    scaling = {k: v for k, v in objects.get(FULL, {}).items() if k != "rope_theta"}
    return settings | {
        "rope_parameters": objects,
        "rope_scaling": scaling if full and full.scaling else None,
        "rope_theta": full.theta if full else _THETAS[FULL],
        "rope_local_base_freq": rotaries[SLIDING].theta if SLIDING in rotaries else 1e4,
    }


GEMMA3 = DecoderFamily(
    name="gemma3_text",
    summary="Gemma 3's text model (Gemma3ForCausalLM, Gemma3TextModel)",
    model_types=("gemma3_text",),
    architectures=("Gemma3ForCausalLM", "Gemma3TextModel"),
    modules=parts.ENDS | parts.ATTENTION | parts.QK_NORMS | SANDWICH | parts.FEED_FORWARD,
    settings=hf.settings_table(
        {k: v for k, v in GEMMA2_SETTINGS.items() if k != "attn_logit_softcapping"}
        | {
            "_sliding_window_pattern": Setting(int, 6, above=0),
            "max_position_embeddings": Setting(int, 131072),
            "rope_local_base_freq": Setting(NUMBER),
            "sliding_window_pattern": SIZE,
        },
        bookkeeping={"hidden_act", "cache_implementation"},
        # transformers keeps this setting and never applies it.
        fixed=GEMMA_FIXED | {"attn_logit_softcapping": (None,)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
)
