"""What one transformer layer is."""

from dataclasses import dataclass
from typing import ClassVar

from .attention.latent_attention import LatentAttentionConfig
from .attention.multi_head_attention import AttentionConfig
from .checks.sizes import (
    check_above_zero,
    check_boolean,
    check_choice,
    check_equal,
    check_kind,
    check_rate,
)
from .config import Config, Leaf, Leaves, under
from .feed_forward import FeedForwardConfig, GatedFeedForwardConfig
from .mixture import MixtureOfExpertsConfig
from .norm import LayerNormConfig, NormConfig, RMSNormConfig

NORM_PLACEMENTS = ("post", "pre", "sandwich", "branch", "parallel", "parallel_shared")


@dataclass(frozen=True, kw_only=True)
class BlockConfig(Config):
    """Self-attention, perhaps cross-attention, and a feed-forward network, each a residual branch.

    Attributes:
        attention: Config of the self-attention.
        feed_forward: Config of the feed-forward network.
        norm: Which norm, at every place.
        norm_placement: One of ``NORM_PLACEMENTS``.
        cross_attention: Config of an attention to a memory, between the two others.
        dropout: Rate on the residual branches.
        layer_scale: First value of the learnt factors on each branch's channels; None: none.
        attention_norm: Whether the self-attention has its norm.

    Raises:
        ValueError: If widths differ, or a part does not go with the placement.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "Block"
    attention: AttentionConfig | LatentAttentionConfig
    feed_forward: FeedForwardConfig | GatedFeedForwardConfig | MixtureOfExpertsConfig
    norm: NormConfig = NormConfig()
    norm_placement: str = "pre"
    cross_attention: AttentionConfig | None = None
    dropout: float = 0.0
    layer_scale: float | None = None
    attention_norm: bool = True

    def __post_init__(self):
        check_boolean(attention_norm=self.attention_norm)
        check_kind(AttentionConfig | LatentAttentionConfig, attention=self.attention)
        kinds = FeedForwardConfig | GatedFeedForwardConfig | MixtureOfExpertsConfig
        check_kind(kinds, feed_forward=self.feed_forward)
        check_kind(NormConfig, norm=self.norm)
        check_choice(NORM_PLACEMENTS, norm_placement=self.norm_placement)
        check_kind(AttentionConfig | None, cross_attention=self.cross_attention)
        check_rate(dropout=self.dropout)
        if self.layer_scale is not None:
            check_above_zero(layer_scale=self.layer_scale)
        D = self.d_model
        check_equal("feed_forward.d_model", self.feed_forward.d_model, "attention.d_model", D)
        if self.cross_attention is not None:
            check_equal(
                "cross_attention.d_model", self.cross_attention.d_model, "attention.d_model", D
            )
            if self.is_parallel:
                raise ValueError(f"norm_placement={self.norm_placement!r} has no cross-attention")
            _check_memory(self.cross_attention)
        if not self.attention_norm and self.norm_placement != "pre":
            raise ValueError(
                f"attention_norm=False goes with norm_placement='pre', not {self.norm_placement!r}"
            )

    @property
    def block(self) -> "BlockConfig":
        """Return the config itself, as named layers return that of the block that they are."""
        return self

    @property
    def d_model(self) -> int:
        """Return the width D."""
        return self.attention.d_model

    @property
    def is_parallel(self) -> bool:
        """Return whether attention and feed-forward network read the same input."""
        return self.norm_placement.startswith("parallel")

    @property
    def branches(self) -> dict[str, Config]:
        """Return the config of every residual branch by attribute name."""
        cross = {} if self.cross_attention is None else {"cross_attention": self.cross_attention}
        return {"attention": self.attention} | cross | {"feed_forward": self.feed_forward}

    @property
    def norms(self) -> dict[str, LayerNormConfig | RMSNormConfig]:
        """Return every norm by attribute name."""
        names = ["attention_norm"] if self.attention_norm else []
        if self.cross_attention is not None:
            names.append("cross_attention_norm")
        if self.norm_placement != "parallel_shared":
            names.append("feed_forward_norm")
        if self.norm_placement == "sandwich":
            names += [name.replace("_norm", "_out_norm") for name in names]
        return {name: self.norm.of(self.d_model) for name in names}

    def leaves(self) -> Leaves:
        leaves: Leaves = {}
        for name, part in (self.branches | self.norms).items():
            leaves |= under(name, part.leaves())
        if self.layer_scale is not None:
            for name in self.branches:
                leaves[f"{name}_scale_param"] = Leaf((self.d_model,), "param")
        return leaves


def _check_memory(attention: AttentionConfig) -> None:
    """Raise ValueError if an attention to a memory depends on where the queries stand in theirs."""
    found = {
        "rotary": attention.rotary is not None,
        "position_bias": attention.position_bias is not None,
        "score.is_causal": attention.score.is_causal,
        "score.window": attention.score.window is not None,
    }
    for name, is_there in found.items():
        if is_there:
            raise ValueError(
                f"cross_attention.{name} is set: a memory has no positions in common with the input"
            )
