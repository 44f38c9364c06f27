"""The stack: embeddings, layers in order, pooler, padding, what is returned on request."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import torch_impl
from diptych.spec import EncoderConfig, TextEmbeddingConfig
from parity_tests.components.modules import PANELS, arrays, build, flat, random_weights
from parity_tests.components.room import IDS, T, X
from parity_tests.components.rooms import component
from parity_tests.components.rooms.embedding import TEXT
from parity_tests.components.rooms.encoder import ENCODER
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.components.runs import outputs_of
from parity_tests.support.sizes import MAX_LEN, B, D, N

VECTORS = EncoderConfig(layer=LAYER, num_layers=3)
KEY_MASK = np.array([[1] * T, [1] * (T - 2) + [0] * 2])
CASES: dict[str, tuple[EncoderConfig, np.ndarray, dict[str, Any]]] = {
    "ids": (ENCODER, IDS, {}),
    "ids, everything": (
        ENCODER,
        IDS,
        {
            "key_mask": KEY_MASK,
            "mask": np.tri(T, dtype=bool),
            "token_type_ids": IDS % 2,
            "position_ids": IDS % MAX_LEN,
        },
    ),
    "vectors": (VECTORS, X, {"key_mask": KEY_MASK}),
    "vectors, unbatched": (VECTORS, X[0], {"key_mask": KEY_MASK[1]}),
    "pre-norm": (
        dataclasses.replace(VECTORS, layer=dataclasses.replace(LAYER, norm_placement="pre")),
        X,
        {},
    ),
}


def encode(panel: str, config: EncoderConfig, inputs: np.ndarray, **options: Any) -> Any:
    """Build an encoder and call it on numpy arrays."""
    names, values = options.keys(), arrays(panel, tuple(options.values()))
    return build(panel, config)(*arrays(panel, (inputs,)), **dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("config", "inputs", "options"), CASES.values(), ids=CASES)
def test_against_the_formula(panel: str, config: Any, inputs: Any, options: Any) -> None:
    weights = {name: array.astype(np.float64) for name, array in random_weights(config).items()}
    wanted = {"need_weights": True, "need_hidden_states": True}
    exact = inputs.astype(np.float64) if inputs.dtype.kind == "f" else inputs
    right = outputs_of(component(config, weights, exact, **options, **wanted))
    found = outputs_of(encode(panel, config, inputs, **options, **wanted))
    assert found.keys() == right.keys()
    for name, array in found.items():
        np.testing.assert_allclose(flat(array)[0], right[name], rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("panel", PANELS)
def test_what_is_returned(panel: str) -> None:
    plain = encode(panel, ENCODER, IDS)
    assert plain.hidden_states is None
    assert plain.attention_weights is None
    asked = encode(panel, ENCODER, IDS, need_weights=True, need_hidden_states=True)
    assert asked.cross_attention_weights is asked.cache is asked.logits is None
    assert asked.pooled.shape == (B, D)
    assert [tuple(h.shape) for h in asked.hidden_states] == [(B, T, D)] * 3
    assert [tuple(w.shape) for w in asked.attention_weights] == [(B, N, T, T)] * 2
    assert isinstance(asked.hidden_states, tuple)
    first, last = flat(asked.hidden_states[0]), flat(asked.hidden_states[-1])
    embedding = flat(build(panel, ENCODER).embedding(*arrays(panel, (IDS,))))
    np.testing.assert_array_equal(first[0], embedding[0])
    np.testing.assert_array_equal(last[0], flat(asked.output)[0])
    np.testing.assert_allclose(flat(plain.output)[0], last[0], atol=1e-6)
    assert encode(panel, VECTORS, X).pooled is None


@pytest.mark.parametrize("panel", PANELS)
def test_padded_positions_are_kept_and_harmless(panel: str) -> None:
    """pytorch/pytorch#97111: columns that are padding everywhere stay, and nothing sees them."""
    key_mask = np.array([[1] * (T - 2) + [0] * 2] * B)
    output = encode(panel, ENCODER, IDS, key_mask=key_mask).output
    assert tuple(output.shape) == (B, T, D)
    changed = IDS.copy()
    changed[:, -2:] = (changed[:, -2:] + 1) % 5
    other = encode(panel, ENCODER, changed, key_mask=key_mask).output
    np.testing.assert_array_equal(flat(output)[0][:, :-2], flat(other)[0][:, :-2])
    short = encode(panel, ENCODER, IDS[:, :-2]).output
    np.testing.assert_allclose(flat(output)[0][:, :-2], flat(short)[0], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("panel", PANELS)
def test_layers_keep_their_order(panel: str) -> None:
    """google/flax#5030: eleven layers, in numeric order, not in that of their names as text."""
    config = EncoderConfig(layer=LAYER, num_layers=11)
    weights = random_weights(config)
    for i in range(11):
        weights[f"layers.{i}.feed_forward.down_proj.bias"][:] = i
    module = build(panel, config, weights)
    for i, layer in enumerate(module.layers):
        assert flat(layer.feed_forward.down_proj.bias)[0].tolist() == [i] * D
    state = PANELS[panel].export_state(module)
    assert state["layers.10.feed_forward.down_proj.bias"].tolist() == [10] * D


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("config", "inputs", "options", "words"),
    [
        (ENCODER, np.zeros((1, MAX_LEN + 1), int), {}, "18 positions exceeds max_seq_len=17"),
        (ENCODER, np.zeros((2, 0), int), {}, "pooler=True needs a sequence of at least one"),
        (VECTORS, X, {"token_type_ids": IDS}, "but embedding=None"),
        (ENCODER, IDS, {"key_mask": np.ones((B, T + 1), bool)}, "key_mask"),
    ],
)
def test_what_does_not_fit(panel: str, config: Any, inputs: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode(panel, config, inputs, **options)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(0, T), (T,), (2, 1, T)])
def test_any_leading_dimensions(panel: str, shape: tuple[int, ...]) -> None:
    result = encode(panel, ENCODER, np.ones(shape, int))
    assert tuple(result.output.shape) == (*shape, D)
    assert tuple(result.pooled.shape) == (*shape[:-1], D)


@pytest.mark.parametrize("panel", PANELS)
def test_empty_sequences_without_pooler(panel: str) -> None:
    config = dataclasses.replace(ENCODER, pooler=False)
    result = encode(panel, config, np.zeros((2, 0), int), need_weights=True)
    assert tuple(result.output.shape) == (2, 0, D)
    assert tuple(result.attention_weights[0].shape) == (2, N, 0, 0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_layers": 0}, "num_layers=0 must be a positive integer"),
        (
            {"embedding": TextEmbeddingConfig(vocab_size=5, d_model=D + 1)},
            "embedding.d_model=16 must equal layer.d_model=15",
        ),
    ],
)
def test_bad_configs_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(ENCODER, **fields)
    assert TEXT.d_model == D


def test_a_module_in_place_of_a_config_is_refused() -> None:
    layer = torch_impl.TransformerEncoderLayer(D, N)
    with pytest.raises(TypeError, match="layer=TransformerEncoderLayer must be of Transf"):
        torch_impl.Encoder(layer, 2)
    with pytest.raises(TypeError, match="encoder=Encoder must be of EncoderConfig"):
        torch_impl.EncoderWithHeads(torch_impl.Encoder(layer.config, 2))
