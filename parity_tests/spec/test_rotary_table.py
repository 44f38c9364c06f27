"""Frequencies of rotary positions: every scaling beside ``transformers``, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from diptych.spec import (
    Config,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RotaryConfig,
    RotaryTable,
    YarnScaling,
)
from parity_tests.support.lift_float32 import LiftFloat32

H, TRAINED = 16, 32
SHORT, LONG = tuple(1.0 + 0.1 * i for i in range(8)), tuple(2.0 + 1.5 * i for i in range(8))
DEEPSEEK = YarnScaling(factor=40.0, max_seq_len=4096, mscale=1.0, mscale_all_dim=0.7)
LLAMA3 = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, max_seq_len=8192)
SCALINGS: dict[str, tuple[float, Any]] = {
    "linear": (1e4, LinearScaling(factor=2.5)),
    "dynamic": (1e4, DynamicScaling(factor=4.0, max_seq_len=TRAINED)),
    "dynamic by 1": (5e5, DynamicScaling(factor=1.0, max_seq_len=TRAINED)),
    "yarn": (1e4, YarnScaling(factor=16.0, max_seq_len=4096)),
    "yarn of DeepSeek": (1e4, DEEPSEEK),
    "yarn with one mscale": (1e4, YarnScaling(factor=4.0, max_seq_len=2048, mscale=0.7)),
    "yarn with its factor": (1e6, YarnScaling(factor=4.0, max_seq_len=4096, attention_factor=0.7)),
    "yarn of gpt_oss": (15e4, YarnScaling(factor=32.0, max_seq_len=4096, truncate=False)),
    "yarn by 1": (1e4, YarnScaling(factor=1.0, max_seq_len=4096)),
    "yarn in one channel": (
        1e4,
        YarnScaling(factor=4.0, max_seq_len=4096, beta_fast=8.0, beta_slow=8.0, truncate=False),
    ),
    "yarn beyond all channels": (100.0, YarnScaling(factor=4.0, max_seq_len=10**6)),
    "llama3": (5e5, LLAMA3),
    "llama3 by 32": (
        1e4,
        Llama3Scaling(factor=32.0, low_freq_factor=1.5, high_freq_factor=6.0, max_seq_len=64),
    ),
    "longrope": (
        1e4,
        LongRopeScaling(short_factor=SHORT, long_factor=LONG, max_seq_len=TRAINED, factor=32.0),
    ),
    "longrope by 1": (
        1e4,
        LongRopeScaling(short_factor=SHORT, long_factor=LONG, max_seq_len=TRAINED, factor=1.0),
    ),
    "longrope with its factor": (
        1e4,
        LongRopeScaling(
            short_factor=SHORT, long_factor=LONG, max_seq_len=TRAINED, attention_factor=1.19
        ),
    ),
}
KINDS = {
    LinearScaling: "linear",
    DynamicScaling: "dynamic",
    YarnScaling: "yarn",
    Llama3Scaling: "llama3",
    LongRopeScaling: "longrope",
}


def their_config(rotary: RotaryConfig) -> LlamaConfig:
    """Return a model's config with these rotary positions, as ``transformers`` writes it."""
    scaling: Any = rotary.scaling
    settings = {name: value for name, value in scaling.to_dict().items() if value is not None}
    trained = settings.pop("max_seq_len", TRAINED)
    kind = KINDS[type(scaling)]
    if kind != "dynamic":
        settings["original_max_position_embeddings"] = trained
    settings |= {"rope_type": kind, "rope_theta": rotary.theta}
    settings["partial_rotary_factor"] = (rotary.dim or H) / H
    return LlamaConfig(
        hidden_size=2 * H,
        num_attention_heads=2,
        head_dim=H,
        max_position_embeddings=trained,
        rope_parameters=settings,
    )


@pytest.mark.parametrize("length", [1, TRAINED, TRAINED + 1, 100, 8192])
@pytest.mark.parametrize(("theta", "scaling"), SCALINGS.values(), ids=SCALINGS)
def test_scaling_as_in_transformers(theta: float, scaling: Any, length: int) -> None:
    rotary = RotaryConfig(theta=theta, scaling=scaling)
    table = RotaryTable(rotary, H)
    with LiftFloat32():
        theirs, factor = ROPE_INIT_FUNCTIONS[KINDS[type(scaling)]](
            their_config(rotary), torch.device("cpu"), seq_len=length
        )
    assert theirs.dtype == torch.float64
    ours = table.frequencies(length)
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=4e-15)
    assert table.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(
    "scaling",
    [LinearScaling(factor=2.0), DynamicScaling(factor=3.0, max_seq_len=TRAINED), DEEPSEEK, LLAMA3],
    ids=lambda scaling: type(scaling).__name__,
)
def test_scaling_of_leading_channels(scaling: Any) -> None:
    rotary = RotaryConfig(dim=6, scaling=scaling)
    with LiftFloat32():
        theirs, _ = ROPE_INIT_FUNCTIONS[KINDS[type(scaling)]](
            their_config(rotary), torch.device("cpu"), seq_len=77
        )
    ours = RotaryTable(rotary, H).frequencies(77)
    assert ours.shape == (3,)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=4e-15)


def test_frequencies_without_scaling() -> None:
    table = RotaryTable(RotaryConfig(theta=100.0, dim=4), 6)
    np.testing.assert_allclose(table.frequencies(10**6), [1.0, 0.1], rtol=1e-15)
    assert table.factor == 1.0


def test_which_scalings_depend_on_the_length() -> None:
    for theta, scaling in SCALINGS.values():
        table = RotaryTable(RotaryConfig(theta=theta, scaling=scaling), H)
        is_constant = np.array_equal(table.frequencies(TRAINED), table.frequencies(4 * TRAINED))
        assert is_constant != table.depends_on_length


def test_tables_compare_by_their_arguments() -> None:
    one, same = (RotaryTable(RotaryConfig(theta=1e6), H) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != RotaryTable(RotaryConfig(theta=1e6), H + 2)
    assert one != RotaryTable(RotaryConfig(theta=1e5), H)


def longrope(short: int, long: int) -> LongRopeScaling:
    return LongRopeScaling(
        short_factor=(1.0,) * short, long_factor=(2.0,) * long, max_seq_len=TRAINED, factor=2.0
    )


REFUSED: dict[str, tuple[Any, str]] = {
    "odd width": (lambda: RotaryConfig(dim=5), r"dim=5 must be even"),
    "width of 0": (lambda: RotaryConfig(dim=0), r"dim=0 must be a positive integer"),
    "odd head": (lambda: RotaryTable(RotaryConfig(), 7), r"head_dim=7 must be even"),
    "wider than the head": (
        lambda: RotaryTable(RotaryConfig(dim=18), 16),
        r"dim=18 must not exceed head_dim=16",
    ),
    "theta of 0": (lambda: RotaryConfig(theta=0.0), r"theta=0\.0 must be above 0"),
    "theta of 1": (
        lambda: RotaryConfig(theta=1.0, scaling=DEEPSEEK),
        r"theta=1\.0 must be above 1 for a yarn scaling",
    ),
    "linear below 1": (lambda: LinearScaling(factor=0.5), r"factor=0\.5 must be at least 1"),
    "dynamic below 1": (
        lambda: DynamicScaling(factor=0.9, max_seq_len=4),
        r"factor=0\.9 must be at least 1",
    ),
    "dynamic of two channels": (
        lambda: RotaryTable(RotaryConfig(scaling=DynamicScaling(factor=2.0, max_seq_len=4)), 2),
        r"head_dim=2 must be at least 4 for a dynamic scaling",
    ),
    "yarn below 1": (
        lambda: YarnScaling(factor=0.1, max_seq_len=4),
        r"factor=0\.1 must be at least 1",
    ),
    "yarn without a length": (
        lambda: YarnScaling(factor=2.0, max_seq_len=0),
        r"max_seq_len=0 must be a positive integer",
    ),
    "llama3 below 1": (
        lambda: Llama3Scaling(factor=0.5, low_freq_factor=1.0, high_freq_factor=4.0, max_seq_len=8),
        r"factor=0\.5 must be at least 1",
    ),
    "llama3 the wrong way round": (
        lambda: Llama3Scaling(factor=2.0, low_freq_factor=4.0, high_freq_factor=4.0, max_seq_len=8),
        r"high_freq_factor=4\.0 must be above low_freq_factor=4\.0",
    ),
    "longrope of two lengths": (lambda: longrope(8, 7), r"short_factor has 8 .*long_factor 7"),
    "longrope of another width": (
        lambda: RotaryTable(RotaryConfig(scaling=longrope(7, 7)), 16),
        r"short_factor has 7 numbers, expected 8 for head_dim=16",
    ),
    "longrope of another width than given": (
        lambda: RotaryConfig(dim=12, scaling=longrope(8, 8)),
        r"short_factor has 8 numbers, expected 6 for dim=12",
    ),
    "longrope by 0": (
        lambda: LongRopeScaling(
            short_factor=(1.0, 0.0), long_factor=(1.0, 1.0), max_seq_len=9, factor=2.0
        ),
        r"short_factor\[1\]=0\.0 must be above 0",
    ),
    "longrope without a factor": (
        lambda: LongRopeScaling(short_factor=(1.0,), long_factor=(1.0,), max_seq_len=9),
        r"attention_factor or a factor",
    ),
    "longrope below 1": (
        lambda: LongRopeScaling(short_factor=(1.0,), long_factor=(1.0,), max_seq_len=9, factor=0.5),
        r"factor=0\.5 must be at least 1",
    ),
    "longrope trained on one position": (
        lambda: LongRopeScaling(short_factor=(1.0,), long_factor=(1.0,), max_seq_len=1, factor=2.0),
        r"max_seq_len=1 must be at least 2",
    ),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(("theta", "scaling"), SCALINGS.values(), ids=SCALINGS)
def test_json_and_back(theta: float, scaling: Config) -> None:
    config = RotaryConfig(theta=theta, dim=H, interleaved=True, scaling=scaling)
    assert RotaryConfig.from_dict(config.to_dict()) == config
