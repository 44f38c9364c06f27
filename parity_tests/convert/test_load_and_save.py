"""``save_model`` and ``load_model``: folders on disk that both panels read."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import jax_impl
import torch_impl
from diptych.spec import (
    CheckpointError,
    FeedForwardConfig,
    PositionalEncodingConfig,
    SinusoidTable,
)
from parity_tests.components.modules import PANELS, build, in_layout, new
from parity_tests.components.rooms import EXAMPLES
from parity_tests.support.sizes import D, F

CONFIG = FeedForwardConfig(d_model=D, d_ff=F)


@pytest.mark.parametrize("component", EXAMPLES)
def test_a_folder_brings_the_module_back(component: str, tmp_path: Any) -> None:
    """Saved by one panel, loaded by both, every bit and the config; in evaluation mode."""
    config = EXAMPLES[component].config
    for panel, impl in PANELS.items():
        module = new(panel, config)
        impl.save_model(module, tmp_path / panel)
        loaded = {other: by.load_model(tmp_path / panel) for other, by in PANELS.items()}
        for other, by in PANELS.items():
            assert type(loaded[other]) is getattr(by, component)
            assert loaded[other].config == config
            assert not loaded[other].training
        own, back = impl.export_state(module), impl.export_state(loaded[panel])
        assert all(back[name].tobytes() == array.tobytes() for name, array in own.items())
        in_torch = torch_impl.export_state(loaded["torch"])
        in_jax = jax_impl.export_state(loaded["jax"])
        carried = in_layout("jax", config, in_torch)
        assert carried.keys() == in_jax.keys()
        assert all(carried[name].tobytes() == array.tobytes() for name, array in in_jax.items())


@pytest.mark.parametrize("panel", PANELS)
def test_load_model_casts_only_when_asked(panel: str, tmp_path: Any) -> None:
    built = build(panel, CONFIG)
    given = PANELS[panel].export_state(built)
    PANELS[panel].save_model(built, tmp_path / "m")
    module = PANELS[panel].load_model(str(tmp_path / "m"), dtype="bfloat16")
    for name, array in PANELS[panel].export_state(module).items():
        assert array.dtype == ml_dtypes.bfloat16
        right = given[name].astype(ml_dtypes.bfloat16)
        assert array.tobytes() == right.tobytes()


@pytest.mark.parametrize("panel", PANELS)
def test_folders_are_not_replaced_unasked(panel: str, tmp_path: Any) -> None:
    module = build(panel, CONFIG)
    PANELS[panel].save_model(module, tmp_path / "m")
    with pytest.raises(ValueError, match="m"):
        PANELS[panel].save_model(module, tmp_path / "m")
    PANELS[panel].save_model(module, tmp_path / "m", overwrite=True)
    with pytest.raises(CheckpointError, match="absent"):
        PANELS[panel].load_model(tmp_path / "absent")


@pytest.mark.parametrize("panel", PANELS)
def test_unused_buffers_are_named(panel: str, tmp_path: Any) -> None:
    """The first seed's table travels with its weights; ours is computed."""
    table = SinusoidTable(11, 6).values.astype(np.float32)[None]
    torch.save({"pe": torch.from_numpy(table)}, tmp_path / "seed.pt")
    with pytest.warns(UserWarning, match="buffers not used by PositionalEncoding: pe$") as caught:
        module = PANELS[panel].load_model(tmp_path / "seed.pt")
    assert caught[0].filename == __file__
    assert module.config == PositionalEncodingConfig(d_model=6, max_seq_len=11)
