"""What calls of attention and of stacks refuse, with the same words in both panels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diptych.spec import AlibiConfig, AttentionConfig, RotaryConfig, ScoreConfig
from parity_tests.components.modules import PANELS, build
from parity_tests.panels.stack_cases import BLOCKS, DECODERS, ENCODER, B, D
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.panels import JAX, TORCH, Panel, both_panels

T, S = 5, 7
X, Y = (np.random.default_rng(0).normal(size=(B, n, D)).astype(np.float32) for n in (T, S))
IDS = np.arange(B * T).reshape(B, T) % 19
PLAIN = AttentionConfig(d_model=D, num_heads=3)
CAUSAL = replace(PLAIN, score=ScoreConfig(is_causal=True))
ROTARY = replace(PLAIN, rotary=RotaryConfig())
ALIBI = replace(PLAIN, position_bias=AlibiConfig())
PAIR = r"expected a pair \(of queries, of keys\)"

REFUSED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    **{
        f"{name}: {case}": (config, (X,), {"position_ids": positions}, error, words)
        for name, config in (("plain", PLAIN), ("rotary", ROTARY), ("ALiBi", ALIBI))
        for case, positions, error, words in (
            ("length", np.arange(4), ValueError, r"position_ids has shape \(4,\), expected \(5,\)"),
            ("batch", IDS[:2], ValueError, r"position_ids has shape \(2, 5\).* or \(3, 5\)"),
            ("floating", X[0, :, 0], TypeError, "position_ids is float32, but it must be integer"),
            ("three", (np.arange(T),) * 3, ValueError, f"position_ids has 3 members, {PAIR}"),
            ("None", (np.arange(T), None), ValueError, f"a member that is None, {PAIR}"),
        )
    },
    "keys' positions": (
        ROTARY,
        (X, Y),
        {"position_ids": (np.arange(T), np.arange(T))},
        ValueError,
        r"position_ids has shape \(5,\), expected \(7,\) or \(3, 7\)",
    ),
    "floating segments": (
        PLAIN,
        (X,),
        {"segment_ids": X[..., 0]},
        TypeError,
        "segment_ids is float32, but it must be integer",
    ),
    "three segments": (PLAIN, (X,), {"segment_ids": (IDS,) * 3}, ValueError, PAIR),
    "a mask as bias": (ALIBI, (X,), {"bias": np.ones((T, T), bool)}, TypeError, "bias is bool"),
    "huge offset": (CAUSAL, (X,), {"offset": 2**40}, ValueError, "offset=1099511627776 must lie"),
    "huge offset, rotary": (
        ROTARY,
        (X,),
        {"offset": -(2**40)},
        ValueError,
        "offset=-1099511627776",
    ),
    "one vector of keys": (
        PLAIN,
        (X, Y[0, 0]),
        {},
        ValueError,
        r"\(12,\), expected \(\.\.\., T, 12",
    ),
    "values of another length": (PLAIN, (X, Y, X), {}, ValueError, "key and value need the same"),
    "memory of an array": (PLAIN, (X,), {"memory": Y}, TypeError, "an array goes to key="),
    "no cache": (
        CAUSAL,
        (X,),
        {"cache": (X, X)},
        TypeError,
        "cache=tuple must be of Cache or Roll",
    ),
    "mask of the memory": (
        BLOCKS["cross, sandwich"],
        (X,),
        {"memory": Y, "memory_mask": np.ones((B, T), bool)},
        ValueError,
        r"memory_mask has shape \(3, 5\), expected that of the memory, \(3, 7\)",
    ),
    "floating mask of the memory": (
        BLOCKS["cross, sandwich"],
        (X,),
        {"memory": Y, "memory_mask": Y[..., 0]},
        TypeError,
        "memory_mask is float32",
    ),
    "one id": (ENCODER, (np.array(3),), {}, ValueError, r"input_ids have shape \(\), expected"),
    "vectors of another width": (
        replace(ENCODER, embedding=None),
        (X[..., :5],),
        {},
        ValueError,
        r"\(3, 5, 5\), expected \(\.\.\., T, 12\)",
    ),
    "one vector": (
        replace(DECODERS["ALiBi"], embedding=None, head=None),
        (X[0, 0],),
        {},
        ValueError,
        r"\(12,\), expected \(\.\.\., T, 12\)",
    ),
}


def arrays(panel: str, value: Any) -> Any:
    """Return a value with its arrays in a panel."""
    if isinstance(value, tuple):
        return tuple(arrays(panel, part) for part in value)
    convert = to_torch if panel == "torch" else to_jax
    return convert(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("config", "given", "options", "error", "words"), REFUSED.values(), ids=REFUSED
)
def test_refused(
    panel: str, config: Any, given: Any, options: Any, error: type[Exception], words: str
) -> None:
    module = build(panel, config)
    with pytest.raises(error, match=words):
        module(*arrays(panel, given), **{k: arrays(panel, v) for k, v in options.items()})


@pytest.mark.parametrize("panel", PANELS)
def test_keys_and_values_that_are_not_projected_together(panel: str) -> None:
    module = build(panel, PLAIN)
    with pytest.raises(ValueError, match=r"key \(3, 7, 12\), value \(3, 5, 12\)"):
        module.project(*arrays(panel, (Y, X)))
    with pytest.raises(ValueError, match=r"\(12,\), expected"):
        module.project(arrays(panel, Y[0, 0]))


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("name", ["learned positions", "ALiBi"])
def test_a_cache_that_the_inputs_do_not_follow(panel: str, name: str) -> None:
    module, ids = build(panel, DECODERS[name]), arrays(panel, IDS)
    cache = module.new_cache(B, 8)
    with pytest.raises(ValueError, match=r"\(3, 5\) do not follow cache\[0\], which holds 2"):
        module(ids, cache=module.new_cache(2, 8))
    with pytest.raises(ValueError, match=r"\(5,\) do not follow"):
        module(ids[0], cache=module.new_cache(1, 8))
    with pytest.raises(TypeError, match=r"cache\[0\]=tuple must be of Cache or RollingCache"):
        module(ids, cache=cache[0])
    with pytest.raises(ValueError, match="cache is of 1 layers, expected num_layers=2"):
        module(ids, cache=cache[:1])
    with pytest.raises(ValueError, match=r"capacity=4611686018427387904 must be below 2\*\*31"):
        module.new_cache(1, 2**62)


@both_panels
@pytest.mark.parametrize("name", ["causal_mask", "window_mask", "block_mask"])
def test_offsets_that_32_bits_do_not_hold(panel: Panel, name: str) -> None:
    options: Any = {"window_mask": {"window": (1, 1)}, "block_mask": {"block_size": 2}}
    mask = getattr(panel.functional, name)
    with pytest.raises(ValueError, match=r"must lie between -2\*\*30 and 2\*\*30"):
        panel.run(mask, 2, 3, offset=2**30, **options.get(name, {}))
    ours, theirs = (
        p.run(getattr(p.functional, name), 2, 3, offset=2**30 - 1, **options.get(name, {}))
        for p in (TORCH, JAX)
    )
    np.testing.assert_array_equal(ours, theirs)
