"""What attention that pools a sequence is (Zhai et al. 2022)."""

from dataclasses import dataclass
from typing import ClassVar

from ..checks.sizes import check_equal, check_kind
from ..config import Config, Leaf, Leaves, under
from ..feed_forward import FeedForwardConfig
from ..norm import NormConfig
from .multi_head_attention import AttentionConfig


@dataclass(frozen=True, kw_only=True)
class AttentionPoolingConfig(Config):
    """One learnt query that reads a sequence, then a feed-forward network (Zhai et al. 2022).

    Attributes:
        attention: Config of the attention.
        feed_forward: Config of the network, ``x + feed_forward(norm(x))``.
        norm: Which norm.

    Raises:
        ValueError: If widths differ.
    """

    component: ClassVar[str] = "AttentionPooling"
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    norm: NormConfig = NormConfig()

    def __post_init__(self):
        check_kind(AttentionConfig, attention=self.attention)
        check_kind(FeedForwardConfig, feed_forward=self.feed_forward)
        check_kind(NormConfig, norm=self.norm)
        check_equal(
            "feed_forward.d_model",
            self.feed_forward.d_model,
            "attention.d_model",
            self.attention.d_model,
        )

    def leaves(self) -> Leaves:
        D = self.attention.d_model
        return (
            {"query_param": Leaf((D,), "param")}
            | under("attention", self.attention.leaves())
            | under("feed_forward_norm", self.norm.of(D).leaves())
            | under("feed_forward", self.feed_forward.leaves())
        )
