"""The parts of the text embedding beside the models that have them, and what does not fit."""

from dataclasses import replace
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from transformers import AlbertConfig, GemmaConfig, OPTConfig, RobertaConfig
from transformers.models.albert.modeling_albert import AlbertModel
from transformers.models.gemma.modeling_gemma import GemmaModel
from transformers.models.opt.modeling_opt import OPTDecoder, OPTLearnedPositionalEmbedding
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

from diptych.spec import EmbeddingConfig, NormConfig, TextEmbeddingConfig
from parity_tests.components.modules import (
    PANELS,
    build,
    flat,
    in_layout,
    new,
    random_weights,
    run,
)
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.panels import Panel, both_panels

IDS = np.array([[5, 6, 7, 1, 1], [1, 4, 1, 3, 2]])
BARE = TextEmbeddingConfig(
    vocab_size=11, d_model=6, max_seq_len=None, num_token_types=0, norm=None, dropout=0.0
)
PADDED = replace(BARE, max_seq_len=7, padding_id=1)
OFFSET = replace(BARE, max_seq_len=7, position_offset=2)


def given(panel: str, config: TextEmbeddingConfig, weights: Any, ids: Any, **options: Any) -> Any:
    """Return what an embedding with these weights makes of ids."""
    module = new(panel, config)
    PANELS[panel].load_state(module, in_layout(panel, config, weights))
    convert = to_torch if panel == "torch" else to_jax
    return flat(module.eval()(convert(ids), **{k: convert(v) for k, v in options.items()}))[0]


@both_panels
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_positions_from_ids(panel: Panel, dtype: Any) -> None:
    """After huggingface/sentence-transformers PR#3879."""
    positions = panel.run(panel.functional.positions_from_ids, IDS.astype(dtype), 1)
    assert positions.tolist() == [[2, 3, 4, 1, 1], [1, 2, 1, 3, 4]]
    long = panel.run(panel.functional.positions_from_ids, np.full((300,), 5, dtype), 0)
    assert long.tolist() == list(range(1, 301))


@both_panels
def test_positions_need_integer_ids(panel: Panel) -> None:
    with pytest.raises(TypeError, match="input_ids is float64, but it must be integer"):
        panel.run(panel.functional.positions_from_ids, IDS / 2, 1)
    assert panel.run(panel.functional.positions_from_ids, IDS[:, :0], 1).shape == (2, 0)


@pytest.mark.parametrize("panel", PANELS)
def test_as_roberta(panel: str) -> None:
    torch.manual_seed(0)
    settings = RobertaConfig(
        vocab_size=11,
        hidden_size=6,
        max_position_embeddings=9,
        type_vocab_size=1,
        pad_token_id=1,
        layer_norm_eps=1e-5,
    )
    theirs = RobertaEmbeddings(settings).eval()
    weights = {
        "token_embed.weight": theirs.word_embeddings.weight,
        "position_embed.weight": theirs.position_embeddings.weight,
        "token_type_embed.weight": theirs.token_type_embeddings.weight,
        "embed_norm.weight": theirs.LayerNorm.weight,
        "embed_norm.bias": theirs.LayerNorm.bias,
    }
    weights = {name: weight.detach().numpy() for name, weight in weights.items()}
    config = replace(PADDED, num_token_types=1, norm=NormConfig())
    expected = theirs(torch.from_numpy(IDS)).detach().numpy()
    np.testing.assert_allclose(given(panel, config, weights, IDS), expected, atol=2e-6)
    positions = np.array([[0, 1, 2, -1, -1], [-1, 0, -1, 1, 2]])
    ours = given(panel, config, weights, IDS, position_ids=positions)
    np.testing.assert_allclose(ours, expected, atol=2e-6)


@pytest.mark.parametrize("panel", PANELS)
def test_as_opt(panel: str) -> None:
    theirs = OPTLearnedPositionalEmbedding(7, OPTConfig(hidden_size=6).hidden_size)
    weights = random_weights(OFFSET) | {"token_embed.weight": np.zeros((11, 6), np.float32)}
    theirs.load_state_dict({"weight": torch.from_numpy(weights["position_embed.weight"])})
    expected = theirs(torch.ones(2, 5)).detach().numpy()
    np.testing.assert_array_equal(given(panel, OFFSET, weights, IDS), expected)
    positions = np.array([4, 0, 6, 1, 2])
    expected = theirs(None, position_ids=torch.from_numpy(positions)).detach().numpy()
    ours = given(panel, OFFSET, weights, IDS[0], position_ids=positions)
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("panel", PANELS)
def test_as_opt_with_projected_tokens(panel: str) -> None:
    """OPT-350m: token vectors are projected before the positions are added."""
    torch.manual_seed(0)
    settings = OPTConfig(
        vocab_size=11,
        hidden_size=6,
        word_embed_proj_dim=4,
        max_position_embeddings=7,
        num_hidden_layers=0,
        num_attention_heads=2,
        do_layer_norm_before=False,
    )
    theirs = OPTDecoder(settings).eval()
    theirs.project_out = None
    weights = {
        "token_embed.weight": theirs.embed_tokens.weight,
        "position_embed.weight": theirs.embed_positions.weight,
        "embed_proj.weight": theirs.project_in.weight,
    }
    weights = {name: weight.detach().numpy() for name, weight in weights.items()}
    config = replace(OFFSET, embed_dim=4, embed_bias=False, embed_proj_of="tokens")
    expected = theirs(torch.from_numpy(IDS)).last_hidden_state.detach().numpy()
    np.testing.assert_allclose(given(panel, config, weights, IDS), expected, atol=2e-6)


@pytest.mark.parametrize("panel", PANELS)
def test_as_albert(panel: str) -> None:
    torch.manual_seed(0)
    settings = AlbertConfig(
        vocab_size=11,
        embedding_size=4,
        hidden_size=6,
        num_attention_heads=2,
        intermediate_size=4,
        max_position_embeddings=7,
        layer_norm_eps=1e-12,
    )
    model = AlbertModel(settings).eval()
    theirs, project = model.embeddings, model.encoder.embedding_hidden_mapping_in
    weights = {
        "token_embed.weight": theirs.word_embeddings.weight,
        "position_embed.weight": theirs.position_embeddings.weight,
        "token_type_embed.weight": theirs.token_type_embeddings.weight,
        "embed_norm.weight": theirs.LayerNorm.weight,
        "embed_norm.bias": theirs.LayerNorm.bias,
        "embed_proj.weight": project.weight,
        "embed_proj.bias": project.bias,
    }
    weights = {name: weight.detach().numpy() for name, weight in weights.items()}
    config = TextEmbeddingConfig(
        vocab_size=11, d_model=6, max_seq_len=7, embed_dim=4, norm=NormConfig(eps=1e-12)
    )
    types = IDS % 2
    expected = project(theirs(torch.from_numpy(IDS), torch.from_numpy(types))).detach().numpy()
    ours = given(panel, config, weights, IDS, token_type_ids=types)
    np.testing.assert_allclose(ours, expected, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("width", [48, 3072])
def test_as_gemma(dtype: torch.dtype, width: int) -> None:
    """The scale is rounded to the table's dtype: sqrt(3072) = 55.43 is 55.5 in bfloat16."""
    torch.manual_seed(0)
    settings = GemmaConfig(
        vocab_size=11,
        hidden_size=width,
        num_hidden_layers=0,
        intermediate_size=4,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=4,
        pad_token_id=0,
    )
    theirs = GemmaModel(settings).to(dtype).embed_tokens
    expected = theirs(torch.from_numpy(IDS)).detach()
    config = replace(BARE, d_model=width, scale=width**0.5)
    weights = {"token_embed.weight": theirs.weight.detach().float().numpy()}
    for panel in PANELS:
        module = new(panel, config)
        PANELS[panel].load_state(module, in_layout(panel, config, weights))
        if panel == "torch":
            ours = module.to(dtype)(torch.from_numpy(IDS)).detach()
            assert ours.dtype == dtype
            assert torch.equal(ours, expected)
        else:
            narrow = narrowed(module, str(dtype).removeprefix("torch."))
            ours = np.asarray(narrow(to_jax(IDS)))
            assert ours.dtype.name == str(dtype).removeprefix("torch.")
            np.testing.assert_array_equal(ours.astype(np.float32), expected.float().numpy())
    if dtype is torch.bfloat16 and width == 3072:
        table = weights["token_embed.weight"].astype(ml_dtypes.bfloat16).astype(np.float32)
        exact = (table[IDS] * np.float32(width**0.5)).astype(ml_dtypes.bfloat16)
        assert (exact.astype(np.float32) != expected.float().numpy()).any()


def narrowed(module: Any, dtype: str) -> Any:
    """Return a JAX module in another dtype, as a user casts one."""
    return jax.tree.map(lambda array: array.astype(dtype), module)


@pytest.mark.parametrize("panel", PANELS)
def test_shared_tokens_are_read_from_the_other_module(panel: str) -> None:
    config = replace(BARE, max_seq_len=7, shared_tokens=True, scale=2.0)
    module, table = (
        build(panel, config),
        build(panel, EmbeddingConfig(num_embeddings=11, d_model=6)),
    )
    convert = to_torch if panel == "torch" else to_jax
    ours = flat(module(convert(IDS), token_embed=table))[0]
    tokens = flat(table(convert(IDS)))[0]
    positions = random_weights(config)["position_embed.weight"][:5]
    np.testing.assert_array_equal(ours, tokens * np.float32(2.0) + positions)
    with pytest.raises(ValueError, match="token_embed is missing, but shared_tokens=True"):
        module(convert(IDS))
    with pytest.raises(ValueError, match="token_embed is given, but shared_tokens=False"):
        build(panel, BARE)(convert(IDS), token_embed=table)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("config", [BARE, PADDED, OFFSET], ids=["bare", "padded", "offset"])
@pytest.mark.parametrize("shape", [(5,), (0, 5), (2, 0), (2, 1, 3)])
def test_any_leading_dimensions_and_empty(panel: str, config: Any, shape: tuple[int, ...]) -> None:
    assert run(panel, config, np.ones(shape, int))[0].shape == (*shape, 6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("config", "options", "error", "words"),
    [
        (OFFSET, {"position_ids": np.array([0, 1, 7])}, IndexError, "id 9 is outside a table of 9"),
        (OFFSET, {"position_ids": np.array([0, -1, 2])}, IndexError, "id -1 is outside"),
        (PADDED, {"position_ids": np.array([0, -2, 2])}, IndexError, "id -1 is outside"),
        (PADDED, {"position_ids": np.array([0, 1, 7])}, IndexError, "id 9 is outside a table of 9"),
        (OFFSET, {"position_ids": np.arange(3.0)}, TypeError, "position_ids is float64"),
        (BARE, {"position_ids": np.arange(3)}, ValueError, "position_ids .* max_seq_len=None"),
        (BARE, {"token_type_ids": np.arange(3)}, ValueError, "num_token_types=0"),
    ],
)
def test_what_does_not_fit(panel: str, config: Any, options: Any, error: Any, words: str) -> None:
    if panel == "jax" and error is TypeError:
        options, words = {"position_ids": np.arange(3, dtype=np.float32)}, "position_ids is float32"
    with pytest.raises(error, match=words):
        run(panel, config, np.array([4, 5, 6]), **options)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("config", [PADDED, OFFSET], ids=["padded", "offset"])
def test_more_positions_than_the_table_has(panel: str, config: TextEmbeddingConfig) -> None:
    """After bentrevett/pytorch-seq2seq#89: offsets have rows of their own."""
    assert run(panel, config, np.full(7, 3))[0].shape == (7, 6)
    with pytest.raises(ValueError, match="8 positions exceeds max_seq_len=7"):
        run(panel, config, np.full(8, 3))


def test_positions_outside_are_nan_where_they_cannot_be_seen() -> None:
    module = build("torch", OFFSET)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    rows = compiled(torch.tensor([3, 3, 3]), position_ids=torch.tensor([0, -1, 7]))
    assert torch.isfinite(rows[0]).all()
    assert torch.isnan(rows[1:]).all()
    jitted = jax.jit(lambda module, ids, positions: module(ids, position_ids=positions))
    rows = jitted(build("jax", OFFSET), to_jax(np.array([3, 3, 3])), to_jax(np.array([0, -1, 7])))
    assert np.isfinite(rows[0]).all()
    assert np.isnan(rows[1:]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_seq_len": 0}, "max_seq_len=0 must be a positive integer"),
        ({"num_token_types": -1}, "num_token_types=-1 must be an integer of at least 0"),
        ({"scale": 0.0}, r"scale=0\.0 must be above 0"),
        ({"max_seq_len": 4, "position_offset": -1}, "position_offset=-1 must be an integer of"),
        ({"max_seq_len": 4, "position_offset": 2, "padding_id": 1}, "position_offset=2 beside"),
        ({"position_offset": 2}, "max_seq_len=None"),
        ({"padding_id": 1}, "max_seq_len=None"),
        ({"max_seq_len": 4, "padding_id": -1}, "padding_id=-1 must be an integer of at least 0"),
        ({"embed_proj_of": "tokens"}, "embed_proj_of='tokens', but embed_dim=None"),
        ({"embed_dim": 3, "embed_proj_of": "all"}, "must be one of 'sum', 'tokens'"),
        ({"embed_dim": 0}, "embed_dim=0 must be a positive integer"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(BARE, **change)
