"""GPT-2 (Radford et al. 2019) as ``transformers`` stores it: weights (in, out), q, k, v in one."""

from typing import Any

from ... import spec
from ...rules import Chain, Split, Transform, Transpose
from ...spec.checks.sizes import check_divides
from .. import transformers_settings as hf
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect, shortest_cycle, write_ends
from .family import DecoderFamily

MODULES: Modules = {
    "wte": "embedding.token_embed",
    "wpe": "embedding.position_embed",
    "h.{i}.ln_1": "layers.{i}.attention_norm",
    "h.{i}.attn.c_attn": tuple(f"layers.{{i}}.attention.{x}_proj" for x in "qkv"),
    "h.{i}.attn.c_proj": "layers.{i}.attention.out_proj",
    "h.{i}.ln_2": "layers.{i}.feed_forward_norm",
    "h.{i}.mlp.c_fc": "layers.{i}.feed_forward.up_proj",
    "h.{i}.mlp.c_proj": "layers.{i}.feed_forward.down_proj",
    "ln_f": "final_norm",
}
_TRANSFORMS: dict[str, Transform] = {
    "h.{i}.attn.c_attn.weight": Chain((Transpose(), Split(3))),
    "h.{i}.attn.c_attn.bias": Split(3),
    "h.{i}.attn.c_proj.weight": Transpose(),
    "h.{i}.mlp.c_fc.weight": Transpose(),
    "h.{i}.mlp.c_proj.weight": Transpose(),
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model, num_layers = require(values, "n_embd"), require(values, "n_layer")
    vocab_size, num_heads = require(values, "vocab_size"), require(values, "n_head")
    check_divides(num_heads=num_heads, d_model=d_model)
    norm = spec.NormConfig(eps=values["layer_norm_epsilon"])
    scale = None if values["scale_attn_weights"] else 1.0
    layers = tuple(
        spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=num_heads,
                attention_dropout=values["attn_pdrop"],
                score=spec.ScoreConfig(is_causal=True, scale=each),
            ),
            feed_forward=spec.FeedForwardConfig(
                d_model=d_model,
                d_ff=values["n_inner"] or 4 * d_model,
                activation=hf.read_activation(values, "activation_function"),
            ),
            norm=norm,
            dropout=values["resid_pdrop"],
        )
        for each in _scales(values, scale, d_model, num_heads, num_layers)
    )
    return spec.DecoderConfig(
        layer=shortest_cycle(layers),
        num_layers=num_layers,
        embedding=spec.TextEmbeddingConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            max_seq_len=require(values, "n_positions"),
            num_token_types=0,
            norm=None,
            dropout=values["embd_pdrop"],
        ),
        final_norm=norm,
        head=spec.LogitsHeadConfig(
            d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"]
        ),
    )


def _scales(
    values: dict[str, Any], scale: float | None, d_model: int, num_heads: int, num_layers: int
) -> list[float | None]:
    """Return the factor on the scores of every layer, or one for all."""
    if not values["scale_attn_by_inverse_layer_idx"]:
        return [scale]
    first = (d_model // num_heads) ** -0.5 if scale is None else scale
    return [first / (i + 1) for i in range(num_layers)]


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    scales = [each.attention.score.scale for each in config.layers]
    by_layer = len(scales) > 1 and len(set(scales)) > 1
    first = (config.d_model // layer.attention.num_heads) ** -0.5
    return {
        "activation_function": hf.write_activation(layer.feed_forward.activation, "gelu_new"),
        "attn_pdrop": layer.attention.attention_dropout,
        "embd_pdrop": embedding.dropout,
        "layer_norm_epsilon": layer.norm.of(1).eps,
        "n_embd": config.d_model,
        "n_head": layer.attention.num_heads,
        "n_inner": layer.feed_forward.d_ff,
        "n_layer": config.num_layers,
        "n_positions": embedding.max_seq_len,
        "resid_pdrop": layer.dropout,
        "scale_attn_by_inverse_layer_idx": by_layer,
        "scale_attn_weights": scales[0] is None or (by_layer and scales[0] == first),
        **write_ends(config),
    }


GPT2 = DecoderFamily(
    name="gpt2",
    summary="GPT-2 (GPT2LMHeadModel, GPT2Model), with or without transformer., mask buffers",
    model_types=("gpt2",),
    architectures=("GPT2LMHeadModel", "GPT2Model"),
    modules=MODULES,
    settings=hf.settings_table(
        {
            "activation_function": Setting(str, "gelu_new"),
            "attn_pdrop": Setting(NUMBER, 0.1),
            "embd_pdrop": Setting(NUMBER, 0.1),
            "layer_norm_epsilon": Setting(NUMBER, 1e-5),
            "n_embd": SIZE,
            "n_head": SIZE,
            "n_inner": SIZE,
            "n_layer": SIZE,
            "n_positions": SIZE,
            "resid_pdrop": Setting(NUMBER, 0.1),
            "scale_attn_by_inverse_layer_idx": Setting(bool, False),
            "scale_attn_weights": Setting(bool, True),
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={
            "n_ctx",
            "reorder_and_upcast_attn",
            "summary_activation",
            "summary_first_dropout",
            "summary_proj_to_labels",
            "summary_type",
            "summary_use_proj",
        },
    ),
    sizes={
        "vocab_size": ("wte.weight", 0),
        "n_embd": ("wte.weight", 1),
        "n_positions": ("wpe.weight", 0),
        "n_inner": ("h.0.mlp.c_fc.weight", 1),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    transforms=lambda config: _TRANSFORMS,
    prefix="transformer.",
    layers=("h", "n_layer"),
    buffers={"h.{i}.attn.bias": "lower_triangle", "h.{i}.attn.masked_bias": None},
)
