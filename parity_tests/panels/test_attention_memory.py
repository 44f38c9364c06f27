"""Attention to a sequence of another width, projected once or in every call."""

from typing import Any

import jax
import numpy as np
import pytest

from diptych.spec import (
    AlibiConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.support.panels import JAX, TORCH, assert_close, both_panels, to_numpy

B, T, S, D, N, K, H, WIDTH = 2, 5, 7, 18, 6, 3, 8, 11
random = np.random.default_rng(0)
QUERY, MEMORY, VALUES = (random.normal(size=s) for s in ((B, T, D), (B, S, WIDTH), (B, S, WIDTH)))
KEY_MASK = np.arange(S) < np.array([[S], [4]])

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"num_kv_heads": K},
    "no key bias": {"qkv_bias": (True, False, True)},
    "rotary": {"rotary": RotaryConfig(scaling=YarnScaling(factor=4.0, max_seq_len=32))},
    "q/k norm": {"qk_norm": QKNormConfig(over="width")},
    "alibi": {"position_bias": AlibiConfig()},
    "relative bias": {"position_bias": RelativeBiasConfig(num_buckets=8, max_distance=9)},
    "sinks, softcap": {"score": ScoreConfig(sinks=True, softcap=1.5)},
}


def build(panel: Any, **options: Any) -> Any:
    return panel.build("MultiHeadAttention", D, N, **({"head_dim": H, "kv_dim": WIDTH} | options))


@both_panels
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_projected_once_is_bit_for_bit_the_same(panel, options):
    module = build(panel, **options)
    with panel.wide():
        query, memory, values, key_mask = map(panel.array, (QUERY, MEMORY, VALUES, KEY_MASK))
        projected = module.project(memory, values)
        again = to_numpy(module(query, memory=projected, key_mask=key_mask))
        once = to_numpy(module(query, memory, values, key_mask=key_mask))
        twice = to_numpy(module(query, memory=projected, key_mask=key_mask))
    heads = options.get("num_kv_heads", N)
    assert projected.key.shape == projected.value.shape == (B, heads, S, H)
    for a, b, c in zip(once, again, twice, strict=True):
        assert a.tobytes() == b.tobytes() == c.tobytes()


@both_panels
def test_values_are_the_keys_if_not_given(panel):
    module = build(panel)
    with panel.wide():
        query, memory = map(panel.array, (QUERY, MEMORY))
        both = to_numpy(module(query, memory, memory))
        assert_close(module(query, memory), both)
        assert_close(module(query, memory=module.project(memory)), both)
        assert_close(module(query, memory=module.project(memory, memory)), both)


@both_panels
def test_positions_of_the_memory(panel):
    module = build(panel, rotary=RotaryConfig(theta=100.0))
    queries, keys = np.arange(T) + 4, 3 * np.arange(S)
    with panel.wide():
        query, memory = map(panel.array, (QUERY, MEMORY))
        at = panel.array((queries, keys))
        whole = to_numpy(module(query, memory, position_ids=at))
        projected = module.project(memory, position_ids=at[1])
        assert_close(module(query, memory=projected, position_ids=at), whole)
        per_sample = panel.array((np.stack([queries] * B), np.stack([keys] * B)))
        assert_close(module(query, memory, position_ids=per_sample), whole)
        shifted = panel.array((queries + 5, keys + 5))
        assert_close(module(query, memory, position_ids=shifted), whole)
        counted = to_numpy(module(query, memory))
        assert np.abs(counted[1] - whole[1]).max() > 1e-4
        with pytest.raises(ValueError, match="position_ids must be a pair"):
            module(query, memory, position_ids=at[0])


@both_panels
def test_one_sequence(panel):
    module = build(panel, num_kv_heads=K, rotary=RotaryConfig(), position_bias=AlibiConfig())
    batch = panel.run(module, QUERY, MEMORY)
    alone = panel.run(module, QUERY[0], MEMORY[0])
    assert_close(alone, tuple(part[0] for part in batch))


@both_panels
def test_refused(panel):
    module = build(panel)
    with panel.wide():
        query, memory = map(panel.array, (QUERY, MEMORY))
        projected = module.project(memory)
        for given in ({"key": memory}, {"value": memory}):
            with pytest.raises(ValueError, match="memory= takes the place of key and value"):
                module(query, memory=projected, **given)
        with pytest.raises(ValueError, match=r"\(2, 5, 18\), expected \(\.\.\., T, 11\)"):
            module(query)
        with pytest.raises(ValueError, match=r"\(2, 7, 11\), expected \(\.\.\., T, 18\)"):
            module(memory, memory)
        with pytest.raises(ValueError, match="leading dimensions"):
            module(query[:1], memory=projected)


@both_panels
def test_gradients_reach_the_memory(panel):
    """The same with and without a projection of its own."""
    module = build(panel, rotary=RotaryConfig(), qk_norm=QKNormConfig())
    cotangent = {"output": np.random.default_rng(2).normal(size=(B, T, D))}

    def once(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"output": module(arrays["query"], arrays["memory"])[0]}

    def projected(arrays: dict[str, Any]) -> dict[str, Any]:
        memory = module.project(arrays["memory"])
        return {"output": module(arrays["query"], memory=memory)[0]}

    inputs = {"query": QUERY, "memory": MEMORY}
    found = [panel.differentiate(call, inputs, cotangent).gradients for call in (once, projected)]
    for name in inputs:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=0, atol=1e-12)
        assert np.abs(found[0][name]).max() > 1e-3


@both_panels
def test_compiled(panel):
    module = build(panel, rotary=RotaryConfig(), num_kv_heads=K).eval()
    with panel.wide():
        query, memory = map(panel.array, (QUERY, MEMORY))
        projected = module.project(memory)
        call = panel.compile(lambda query, memory: module(query, memory=memory)[0])
        given = (
            projected if panel is not TORCH else type(projected)(*(x.detach() for x in projected))
        )
        assert_close((call(query, given),), (module(query, memory)[0],))


@both_panels
@pytest.mark.parametrize("options", [{"rotary": RotaryConfig()}, OPTIONS["alibi"]])
def test_an_offset_moves_the_queries(panel, options):
    score = ScoreConfig(is_causal=True, window=3)
    module = build(panel, kv_dim=None, score=score, **options)
    whole = panel.run(module, QUERY)
    for offset in (3, np.array([3, 3])):
        late = panel.run(module, QUERY[:, 3:], QUERY, offset=offset)
        assert_close(late, (whole[0][:, 3:], whole[1][:, :, 3:]))


@both_panels
def test_a_head_wider_than_the_model_divides(panel):
    """meta-pytorch/gpt-fast#115."""
    module = panel.build("MultiHeadAttention", 6, 2, head_dim=4)
    shapes = {name: array.shape for name, array in panel.package.export_state(module).items()}
    wide, narrow = ((8, 6), (6, 8)) if panel is TORCH else ((6, 8), (8, 6))
    kernel = "weight" if panel is TORCH else "kernel"
    assert shapes[f"q_proj.{kernel}"] == wide
    assert shapes[f"out_proj.{kernel}"] == narrow
    x = random.normal(size=(B, T, 6))
    assert panel.run(module, x)[0].shape == x.shape


def test_both_panels_draw_alike():
    """pytorch/pytorch#166378: the same spread, whether heads are grouped or not."""
    for name in ("q_proj", "k_proj", "out_proj"):
        spreads = []
        for panel in (TORCH, JAX):
            module = panel.build("MultiHeadAttention", 512, 8, num_kv_heads=4)
            state = panel.package.export_state(module)
            spreads.append(state[f"{name}.{'weight' if panel is TORCH else 'kernel'}"].std())
        assert abs(spreads[0] / spreads[1] - 1) < 0.05


@both_panels
def test_causal_without_a_cache_sees_no_future(panel):
    """meta-pytorch/torchtune#959, with every option that moves or adds."""
    for options in OPTIONS.values():
        if "score" in options:
            continue
        module = build(panel, kv_dim=None, **options, score=ScoreConfig(is_causal=True))
        changed = QUERY.copy()
        changed[:, 3] += 1.0
        before, after = panel.run(module, QUERY)[0], panel.run(module, changed)[0]
        assert np.array_equal(before[:, :3], after[:, :3])
        assert (np.abs(before - after)[:, 3:] > 0).all(-1).all()


def test_vmap_over_samples_is_the_batch():
    module = build(JAX, rotary=RotaryConfig(), num_kv_heads=K, position_bias=AlibiConfig())
    batch = JAX.run(module, QUERY, MEMORY)
    assert_close(JAX.run(jax.vmap(lambda q, m: module(q, m)), QUERY, MEMORY), batch)
