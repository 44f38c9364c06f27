"""One layer of a stack: attention, perhaps over a memory, and a feed-forward network."""

from dataclasses import replace
from typing import Any

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LatentAttentionConfig,
    MixtureOfExpertsConfig,
    NormConfig,
)
from diptych.spec.block import NORM_PLACEMENTS
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, under
from parity_tests.components.room import Call, Example, Room, T, random_input
from parity_tests.components.rooms.feed_forward import feed_forward, gated_feed_forward
from parity_tests.components.rooms.latent_attention import latent_attention
from parity_tests.components.rooms.mixture import mixture_of_experts
from parity_tests.components.rooms.multi_head_attention import multi_head_attention
from parity_tests.components.rooms.norms import norm
from parity_tests.panels import stack_cases
from parity_tests.support.sizes import B


def block(
    config: Any,
    tensors: Tensors,
    x: Array,
    mask: Array | None = None,
    *,
    memory: Array | None = None,
    memory_mask: Array | None = None,
    need_weights: bool = False,
    **options: Any,
) -> dict[str, Array | None]:
    """Compute a transformer layer: each placement written out as its paper has it."""
    config = config.block
    found: dict[str, Any] = {}

    def self_attend(x: Array) -> Array:
        inner = under("attention", tensors)
        is_latent = isinstance(config.attention, LatentAttentionConfig)
        if is_latent:
            y, weights = latent_attention(config.attention, inner, x, mask, **options)
        else:
            y, weights = multi_head_attention(config.attention, inner, x, mask=mask, **options)
        found["attention_weights"] = weights
        return y

    def cross_attend(x: Array) -> Array:
        inner = under("cross_attention", tensors)
        y, found["cross_attention_weights"] = multi_head_attention(
            config.cross_attention, inner, x, memory, key_mask=memory_mask
        )
        return y

    def transform(x: Array) -> Array:
        apply = {
            FeedForwardConfig: feed_forward,
            GatedFeedForwardConfig: gated_feed_forward,
            MixtureOfExpertsConfig: mixture_of_experts,
        }[type(config.feed_forward)]
        return apply(config.feed_forward, under("feed_forward", tensors), x)

    def normed(name: str, x: Array) -> Array:
        own = under(name, tensors)
        return norm(config.norm, own, x) if own else x

    def scaled(name: str, y: Array) -> Array:
        return y * tensors.get(f"{name}_scale_param", 1.0)

    branches = {"attention": self_attend}
    if config.cross_attention is not None:
        branches["cross_attention"] = cross_attend
    branches["feed_forward"] = transform
    placement = config.norm_placement
    if placement.startswith("parallel"):
        first = normed("attention_norm", x)
        second = first if placement == "parallel_shared" else normed("feed_forward_norm", x)
        x = x + scaled("attention", self_attend(first)) + scaled("feed_forward", transform(second))
    else:
        for name, branch in branches.items():
            match placement:
                case "post":
                    x = normed(f"{name}_norm", x + scaled(name, branch(x)))
                case "pre":
                    x = x + scaled(name, branch(normed(f"{name}_norm", x)))
                case "sandwich":
                    y = branch(normed(f"{name}_norm", x))
                    x = x + scaled(name, normed(f"{name}_out_norm", y))
                case "branch":
                    x = x + scaled(name, normed(f"{name}_norm", branch(x)))
    weights = found if need_weights else {}
    return {
        "output": x,
        "attention_weights": weights.get("attention_weights"),
        "cross_attention_weights": weights.get("cross_attention_weights"),
        "cache": None,
    }


def _call(name: str, config: BlockConfig) -> Call:
    def call(draw):
        arguments = {"x": draw.normal(B, 7, stack_cases.D)}
        if config.cross_attention is not None:
            arguments["memory"] = draw.normal(B, 5, stack_cases.D)
        is_slow = name in NORM_PLACEMENTS  # the rows of the model families have them all
        options = {"need_weights": True}
        return ComponentCase(config, arguments, options, keywords=("memory",), is_slow=is_slow)

    return call


_example = stack_cases.block()
BLOCK = Room(
    Example(_example, (random_input(B, T, stack_cases.D),)),
    changes={
        "attention": replace(_example.attention, num_heads=2),
        "feed_forward": FeedForwardConfig(d_model=stack_cases.D, d_ff=13),
        "norm": NormConfig(kind="rms"),
        "norm_placement": "branch",
        "cross_attention": AttentionConfig(d_model=stack_cases.D, num_heads=2),
        "dropout": 0.5,
        "layer_scale": 0.5,
        "attention_norm": False,
    },
    formula=block,
    calls={f"Block, {name}": _call(name, config) for name, config in stack_cases.BLOCKS.items()},
    is_slow=True,
)
