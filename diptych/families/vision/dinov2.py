"""DINOv2 (Oquab et al. 2023) as ``transformers`` stores it: gate and up projection in one."""

from typing import Any

from ... import spec
from ...rules import Split, Unstack
from .. import transformers_settings as hf
from ..fused import both_parts
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind
from .image_family import MODULES, SIZES, TRANSFORMS, ImageFamily, read_square

_LAYER, _OURS = "encoder.layer.{i}", "layers.{i}"
_FUSED = f"{_LAYER}.mlp.weights_in"
_MODULES: Modules = {
    **MODULES,
    f"{_LAYER}.norm1": f"{_OURS}.attention_norm",
    f"{_LAYER}.layer_scale1.lambda1": f"{_OURS}.attention_scale_param",
    f"{_LAYER}.norm2": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.layer_scale2.lambda1": f"{_OURS}.feed_forward_scale_param",
}
_PLAIN: Modules = {
    f"{_LAYER}.mlp.fc1": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.mlp.fc2": f"{_OURS}.feed_forward.down_proj",
}
_GATED: Modules = {
    _FUSED: (f"{_OURS}.feed_forward.gate_proj", f"{_OURS}.feed_forward.up_proj"),
    f"{_LAYER}.mlp.weights_out": f"{_OURS}.feed_forward.down_proj",
}


def _select(config: spec.VisionEncoderConfig) -> Modules:
    gated = isinstance(config.layers[0].feed_forward, spec.GatedFeedForwardConfig)
    return {**_MODULES, **(_GATED if gated else _PLAIN)}


def _read(values: dict[str, Any]) -> spec.VisionEncoderConfig:
    d_model = require(values, "hidden_size")
    width = int(d_model * values["mlp_ratio"])
    gated = values["use_swiglu_ffn"]
    feed_forward = (
        spec.GatedFeedForwardConfig(d_model=d_model, d_ff=_gated_width(width), bias=True)
        if gated
        else spec.FeedForwardConfig(
            d_model=d_model, d_ff=width, activation=hf.read_activation(values, "hidden_act")
        )
    )
    norm = spec.NormConfig(eps=values["layer_norm_eps"])
    dropout = values["hidden_dropout_prob"]
    return spec.VisionEncoderConfig(
        embedding=spec.PatchEmbeddingConfig(
            image_size=read_square(values, "image_size"),
            patch_size=read_square(values, "patch_size"),
            d_model=d_model,
            num_channels=require(values, "num_channels"),
            mask_token=values["mask_token"],
            dropout=dropout,
        ),
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=require(values, "num_attention_heads"),
                qkv_bias=values["qkv_bias"],
                attention_dropout=values["attention_probs_dropout_prob"],
            ),
            feed_forward=feed_forward,
            norm=norm,
            layer_scale=values["layerscale_value"],
        ),
        num_layers=require(values, "num_hidden_layers"),
        final_norm=norm,
        pooling=values["pooling"],
    )


def _gated_width(width: int) -> int:
    """Return the width of the gated network: two thirds, up to a multiple of 8."""
    return (int(width * 2 / 3) + 7) // 8 * 8


def _write(config: spec.VisionEncoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    feed_forward = layer.feed_forward
    gated = isinstance(feed_forward, spec.GatedFeedForwardConfig)
    return {
        "attention_probs_dropout_prob": layer.attention.attention_dropout,
        "hidden_dropout_prob": config.embedding.dropout,
        "hidden_size": config.d_model,
        "image_size": config.embedding.image_size,
        "layer_norm_eps": layer.norm.of(1).eps,
        "layerscale_value": layer.layer_scale,
        "mlp_ratio": _ratio(config.d_model, feed_forward.d_ff, gated),
        "num_attention_heads": layer.attention.num_heads,
        "num_channels": config.embedding.num_channels,
        "num_hidden_layers": config.num_layers,
        "patch_size": config.embedding.patch_size,
        "qkv_bias": layer.attention.qkv_bias,
        "use_mask_token": config.embedding.mask_token,
        "use_swiglu_ffn": gated,
        **({} if gated else {"hidden_act": hf.write_activation(feed_forward.activation)}),
    }


def _ratio(d_model: int, d_ff: int, gated: bool) -> int:
    """Return the whole ratio that gives a width; where none does, the nearest below."""
    if not gated:
        return d_ff // d_model
    fitting = (n for n in range(1, 2 * d_ff // d_model + 2) if _gated_width(n * d_model) == d_ff)
    return next(fitting, 1)


DINOV2 = ImageFamily(
    name="dinov2",
    model_types=("dinov2",),
    prefix="dinov2.",
    summary="DINOv2 (Dinov2Model, Dinov2ForImageClassification), with or without dinov2.",
    architectures=("Dinov2ForImageClassification", "Dinov2Model"),
    modules={**_MODULES, **_PLAIN, **_GATED},
    select=_select,
    settings=hf.settings_table(
        {
            **hf.LABELS,
            "attention_probs_dropout_prob": Setting(NUMBER, 0.0),
            "hidden_act": Setting(str, "gelu"),
            "hidden_dropout_prob": Setting(NUMBER, 0.0),
            "hidden_size": SIZE,
            "image_size": Setting((int, list)),
            "layer_norm_eps": Setting(NUMBER, 1e-6),
            "layerscale_value": Setting(NUMBER, 1.0),
            "mlp_ratio": Setting(NUMBER, 4),
            "num_attention_heads": SIZE,
            "num_channels": SIZE,
            "num_hidden_layers": SIZE,
            "patch_size": Setting((int, list)),
            "qkv_bias": Setting(bool),
            "use_mask_token": Setting(bool, True),
            "use_swiglu_ffn": Setting(bool, False),
        },
        bookkeeping={
            "apply_layernorm",
            "out_features",
            "out_indices",
            "reshape_hidden_states",
            "stage_names",
        },
        fixed={"drop_path_rate": (0.0, None)},
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig | spec.GatedFeedForwardConfig),
    transforms={
        **TRANSFORMS,
        "embeddings.mask_token": Unstack(1),
        **both_parts(_FUSED, Split(2)),
    },
    head_pooling="class_mean",
    pooling=lambda names: "class",
    poolings=("class",),
)
