"""The attention modules: the score config, one causal head, modes, what is refused."""

import jax
import numpy as np
import pytest

from diptych.spec import ScoreConfig
from parity_tests.support.panels import JAX, TORCH, assert_close, both_panels, softmax, to_numpy

B, T, S, D, N, H = 3, 4, 5, 6, 3, 7
"""As many samples as heads, and heads wider than d_model / num_heads."""


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


SCORES = {
    "scale": {"scale": 0.3},
    "softcap": {"softcap": 0.8},
    "causal": {"is_causal": True},
    "window": {"window": (1, 0)},
    "causal window": {"window": 2, "is_causal": True},
}


@both_panels
@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_every_part_of_the_score_config_reaches_the_scores(panel, score):
    module = panel.build("ScaledDotProductAttention", H, score=ScoreConfig(**score))
    given = panel.array((tokens(B, T, H), tokens(B, S, H, seed=1), tokens(B, S, 2, seed=2)))
    options = {"offset": 1, "mask": panel.array(np.arange(S) != 2)}
    expected = panel.functional.scaled_dot_product_attention(*given, **score, **options)
    assert_close(module(*given, **options), expected)
    plain = panel.functional.scaled_dot_product_attention(*given, **options)
    assert not np.allclose(to_numpy(plain[1]), to_numpy(expected[1]))

    projected = panel.build("MultiHeadAttention", H, 1, score=ScoreConfig(**score))
    without = panel.build("MultiHeadAttention", H, 1)
    panel.package.load_state(without, panel.package.export_state(projected))
    x = panel.array(3 * tokens(B, T, H))
    ours, theirs = to_numpy(projected(x, x, x)[1]), to_numpy(without(x, x, x)[1])
    assert not np.allclose(ours, theirs)


CALLS = {
    "mask": np.tri(T, k=1, dtype=bool) & (np.arange(T) != 1),
    "key_mask": np.array([[1, 1, 0, 1]] * B),
    "bias": tokens(T, T, seed=4),
    "offset": np.array([1, 2, 0]),
    "segment_ids": np.array([[0, 1, 1, 0]] * B),
}


@both_panels
@pytest.mark.parametrize("option", CALLS)
def test_every_option_of_a_call_reaches_the_scores(panel, option):
    """With one head, so that multi-head attention is attention of its projections."""
    score, given = ScoreConfig(is_causal=True), {option: CALLS[option]}
    many = panel.build("MultiHeadAttention", H, 1, score=score)
    bare = panel.build("ScaledDotProductAttention", H, score=score)
    x = tokens(B, T, H)
    heads = [panel.project(many, f"{name}_proj", x)[:, None] for name in "qkv"]
    expected = panel.attend(*heads, is_causal=True, **given)
    assert not np.allclose(panel.attend(*heads, is_causal=True)[1], expected[1])
    assert_close(panel.run(bare, *heads, **given), expected)
    assert_close(panel.run(many, x, x, x, **given)[1:], expected[1:])


@both_panels
def test_a_query_of_another_width_is_refused(panel):
    module = panel.build("ScaledDotProductAttention", H)
    x = panel.array(tokens(B, T, H + 1))
    with pytest.raises(ValueError, match=r"\(3, 4, 8\), expected a last axis of 7"):
        module(x, x, x)


@both_panels
def test_head_attention(panel):
    module = panel.build("HeadAttention", D, H, T)
    x = tokens(B, T, D)
    query, key, value = (panel.project(module, f"{name}_proj", x) for name in "qkv")
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(H)
    expected = softmax(np.where(np.tri(T, dtype=bool), scores, -np.inf))
    assert_close((module(panel.array(x)),), (expected @ value,))
    assert_close((module.get_attention_weights(panel.array(x)),), (expected,))
    assert_close(module(panel.array(x), need_weights=True), (expected @ value, expected))
    assert_close((module(panel.array(x[0, :2])),), ((expected @ value)[0, :2],))


def test_head_attention_refuses_what_is_too_long_in_the_same_words():
    messages = []
    for panel in (TORCH, JAX):
        module = panel.build("HeadAttention", D, H, T)
        for call in (module, module.get_attention_weights):
            with pytest.raises(ValueError, match="5 positions exceeds max_seq_len=4") as caught:
                call(panel.array(tokens(B, T + 1, D)))
            messages.append(str(caught.value))
    assert len(set(messages)) == 1


@both_panels
def test_training_draws_and_evaluation_does_not(panel):
    """One instance, toggled: training draws anew each time, evaluation equals no dropout at all."""
    module = panel.build("MultiHeadAttention", D, N, attention_dropout=0.5)
    without = panel.build("MultiHeadAttention", D, N)
    panel.package.load_state(without, panel.package.export_state(module))
    x = panel.array(tokens(B, T, D))
    expected, expected_weights = to_numpy(without(x, x, x))
    draws = []
    for seed in range(3):
        drawn = {} if panel is TORCH else {"rng_key": jax.random.key(seed)}
        output, weights = to_numpy(module.train()(x, x, x, **drawn))
        assert np.array_equal(weights, expected_weights)
        draws.append(output.tobytes())
        assert np.array_equal(to_numpy(module.eval()(x, x, x)[0]), expected)
    assert len({*draws, expected.tobytes()}) == 4


@pytest.mark.parametrize(
    ("component", "sizes"), [("MultiHeadAttention", (D, N)), ("ScaledDotProductAttention", (D,))]
)
def test_jax_training_without_a_key_is_refused(component, sizes):
    module = JAX.build(component, *sizes, attention_dropout=0.1)
    x = JAX.array(tokens(B, T, D))
    with pytest.raises(ValueError, match=r"rng_key=.*\.eval\(\)"):
        module(x, x, x)
    module.eval()(x, x, x)


REFUSED = [
    ("MultiHeadAttention", (64, 7), {}, "num_heads=7 must divide d_model=64"),
    ("MultiHeadAttention", (64, 0), {}, "num_heads=0 must be a positive integer"),
    ("MultiHeadAttention", (64, -1), {}, "num_heads=-1"),
    ("MultiHeadAttention", (0, 4), {}, "d_model=0"),
    ("MultiHeadAttention", (6, 3), {"num_kv_heads": 2}, "num_kv_heads=2 must divide num_heads=3"),
    ("MultiHeadAttention", (6, 3), {"num_kv_heads": 0}, "num_kv_heads=0"),
    ("MultiHeadAttention", (6, 3), {"head_dim": 0}, "head_dim=0"),
    ("MultiHeadAttention", (6, 3), {"attention_dropout": 1.0}, "attention_dropout=1.0"),
    ("ScaledDotProductAttention", (0,), {}, "d_k=0"),
    ("ScaledDotProductAttention", (4,), {"attention_dropout": -0.1}, "attention_dropout=-0.1"),
    ("HeadAttention", (4, 0, 4), {}, "head_size=0"),
    ("HeadAttention", (4, 4, 0), {}, "max_seq_len=0"),
]


@pytest.mark.parametrize(("component", "sizes", "options", "rule"), REFUSED)
def test_bad_sizes_are_refused_in_the_same_words(component, sizes, options, rule):
    messages = []
    for panel in (TORCH, JAX):
        with pytest.raises(ValueError, match=rule) as caught:
            panel.build(component, *sizes, **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@both_panels
@pytest.mark.parametrize("component", ["MultiHeadAttention", "ScaledDotProductAttention"])
def test_a_score_that_is_no_config_is_refused(panel, component):
    sizes = (D, N) if component == "MultiHeadAttention" else (D,)
    with pytest.raises(TypeError, match="score=dict must be of ScoreConfig"):
        panel.build(component, *sizes, score={"is_causal": True})


@pytest.mark.parametrize(("panel", "error"), [(TORCH, RuntimeError), (JAX, TypeError)])
def test_an_input_of_another_dtype_than_the_parameters_is_refused(panel, error):
    module = panel.build("MultiHeadAttention", D, N)
    with pytest.raises(error):
        module(*[panel.array(tokens(B, T, D).astype(np.float32))] * 3)


def test_modules_hold_parameters_config_and_mode_only():
    for panel in (TORCH, JAX):
        for component, sizes in (
            ("MultiHeadAttention", (D, N)),
            ("ScaledDotProductAttention", (D,)),
            ("HeadAttention", (D, H, T)),
        ):
            module = panel.build(component, *sizes)
            assert module.training is True
            held = {name for name in vars(module) if not name.startswith("_")}
            empty = {name for name in held if getattr(module, name) is None}
            names = {name for name in held - empty if not name.endswith("_proj")}
            assert names == {"config", "training"}
            if panel is TORCH:
                assert not list(module.buffers())
