"""People's own checkpoints: nanoGPT's and minGPT's training files, torch.nn, the seed's GPT."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from diptych.convert import convert_checkpoint, diff_checkpoints, open_checkpoint, read_model
from diptych.families import FAMILIES
from diptych.parity.compare import compare_exact
from diptych.spec import CheckpointError
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.families.cases import GPT2, language_model
from parity_tests.support.checkpoints import stored_tensors
from parity_tests.support.harness import to_torch
from parity_tests.support.seed_code import HeadAttention
from parity_tests.support.tiny_transformers import redraw, save_tiny

E, N, H, V, T, L = 12, 3, 5, 17, 9, 2
X = np.random.default_rng(0).normal(size=(2, 7, E))
IDS = np.random.default_rng(1).integers(0, V, (2, T))


def there_and_back(path: Any, tmp_path: Any, **reading: Any) -> None:
    convert_checkpoint(path, tmp_path / "flax", to="flax", **reading)
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf", format="pt")
    assert diff_checkpoints(open_checkpoint(path, **reading), tmp_path / "back").identical


def assert_outputs(
    path: Any, arguments: Any, right: np.ndarray, output: str, **reading: Any
) -> None:
    """Both panels compute what the module did that made the file, in float64."""
    loaded = read_model(open_checkpoint(path, **reading), layout="torch")
    wide = {name: array.astype(np.float64) for name, array in loaded.tensors.items()}
    for run in (run_component_torch, run_component_jax):
        found = run(ComponentCase(loaded.config, arguments, {}), wide, {}).outputs[output]
        assert compare_exact(found, right, name=output).ok


@pytest.mark.parametrize(
    ("family", "settings", "is_tied"),
    [("nanogpt", {"activation_function": "gelu"}, True), ("mingpt", {}, False)],
)
def test_training_files_of_karpathys_gpts(family, settings, is_tied, tmp_path):
    """Wrapped by compilation, masks beside the weights, an optimizer around the model."""
    dropout = {"resid_pdrop": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0}
    case = language_model(
        "gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT2, **settings, **dropout,
        tie_word_embeddings=is_tied,
    )  # fmt: skip
    save_tiny(case, tmp_path / "gpt2")
    weights = {}
    for name, array in stored_tensors(tmp_path / "gpt2").items():
        is_linear = array.ndim == 2 and (".attn." in name or ".mlp." in name)
        weights[f"_orig_mod.{name}"] = to_torch(
            np.ascontiguousarray(array.T if is_linear else array)
        )
    table = weights["_orig_mod.transformer.wte.weight"]
    weights.setdefault("_orig_mod.lm_head.weight", table)
    for i in range(3):
        weights[f"_orig_mod.transformer.h.{i}.attn.bias"] = torch.tril(torch.ones(1, 1, 64, 64))
    state = {"model": weights, "optimizer": {"state": {0: {"step": torch.ones(1)}}}, "iter_num": 3}
    path = tmp_path / "ckpt.pt"
    torch.save(state, path)
    reading = {"family": family, "settings": {"n_head": 4}}
    opened = open_checkpoint(path, **reading)
    theirs = open_checkpoint(tmp_path / "gpt2")
    assert opened.config == theirs.config
    assert opened.leaves.keys() == theirs.leaves.keys()
    for name, leaf in opened.leaves.items():
        assert leaf.read().tobytes() == theirs.leaves[name].read().tobytes(), name
    there_and_back(path, tmp_path, **reading)
    with pytest.raises(CheckpointError, match="n_head: not in the checkpoint; give --set n_head"):
        open_checkpoint(path, family=family)


def test_model_args_in_a_training_file(tmp_path):
    """nanoGPT writes the number of heads beside the weights; what is given goes before it."""
    args = {"n_layer": L, "n_head": N, "n_embd": E, "block_size": T, "bias": False, "dropout": 0.0}
    shapes = {"wte.weight": (V, E), "wpe.weight": (T, E), "ln_f.weight": (E,)}
    for i in range(L):
        shapes |= {f"h.{i}.ln_1.weight": (E,), f"h.{i}.ln_2.weight": (E,)}
        shapes |= {f"h.{i}.attn.c_attn.weight": (3 * E, E), f"h.{i}.attn.c_proj.weight": (E, E)}
        shapes |= {f"h.{i}.mlp.c_fc.weight": (4 * E, E), f"h.{i}.mlp.c_proj.weight": (E, 4 * E)}
    model = {f"transformer.{name}": torch.randn(shape) for name, shape in shapes.items()}
    model["lm_head.weight"] = model["transformer.wte.weight"]
    path = tmp_path / "ckpt.pt"
    torch.save({"model": model, "model_args": args, "config": {"seed": 1}, "iter_num": 3}, path)
    opened = open_checkpoint(path)  # neither GPT-2 nor minGPT knows all of these settings
    assert opened.family.name == "nanogpt"
    assert opened.config.layers[0].attention.num_heads == N
    (left_out,) = [note for note in opened.notes if note.startswith("not read")]
    assert "'config'" in left_out
    assert "model_args" not in left_out
    given = open_checkpoint(path, family="nanogpt", settings={"n_head": 4})
    assert given.config.layers[0].attention.num_heads == 4
    there_and_back(path, tmp_path, family="nanogpt")
    other = {"model": model, "model_args": args | {"n_head": 2}}
    torch.save({"model": model, "model_args": args, "ema": other}, path)
    assert open_checkpoint(path, key="ema.model").config.layers[0].attention.num_heads == 2
    assert open_checkpoint(path, key="model").config.layers[0].attention.num_heads == N
    wrong = {"model": model, "model_args": args | {"rotary": True}}
    torch.save(wrong, path)
    with pytest.raises(CheckpointError, match="model_args: rotary: setting not understood"):
        open_checkpoint(path, family="nanogpt")


def in_torch(module: nn.Module, *arguments: np.ndarray) -> np.ndarray:
    module.double().eval()
    redraw(module)
    with torch.no_grad():
        found = module(*map(to_torch, arguments))
    return (found[0] if isinstance(found, tuple) else found).numpy()


ENCODERS = {
    "post-norm": ({}, None),
    "pre-norm, final norm": ({"norm_first": True, "activation": "gelu"}, nn.LayerNorm(E)),
}


@pytest.mark.parametrize(("options", "norm"), ENCODERS.values(), ids=ENCODERS)
def test_torch_transformer_encoder(options, norm, tmp_path):
    layer = nn.TransformerEncoderLayer(E, N, 20, batch_first=True, **options)
    module = nn.TransformerEncoder(layer, L, norm, enable_nested_tensor=False)
    right = in_torch(module, X)
    path = tmp_path / "encoder.pt"
    torch.save(module.state_dict(), path)
    reading = {"settings": {"num_heads": N, **options}}
    assert_outputs(path, {"inputs": X}, right, "[output]", **reading)
    there_and_back(path, tmp_path, **reading)


def test_torch_layer_alone(tmp_path):
    module = nn.TransformerEncoderLayer(E, N, 20, batch_first=True)
    right = in_torch(module, X)
    torch.save(module.state_dict(), tmp_path / "layer.pt")
    reading = {"settings": {"num_heads": N}}
    assert_outputs(tmp_path / "layer.pt", {"x": X}, right, "output", **reading)
    there_and_back(tmp_path / "layer.pt", tmp_path, **reading)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 8, "vdim": 8}], ids=str)
def test_torch_multihead_attention(options, tmp_path):
    module = nn.MultiheadAttention(E, N, batch_first=True, **options)
    memory = np.random.default_rng(2).normal(size=(2, 6, options.get("kdim", E)))
    right = in_torch(module, X, memory, memory)
    torch.save(module.state_dict(), tmp_path / "attention.pt")
    reading = {"family": "torch_layers", "settings": {"num_heads": N}}
    arguments = {"query": X, "key": memory}
    assert_outputs(tmp_path / "attention.pt", arguments, right, "[0]", **reading)
    there_and_back(tmp_path / "attention.pt", tmp_path, **reading)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self._heads = nn.ModuleList([HeadAttention(E, H, T) for _ in range(N)])
        self._layer = nn.Linear(H * N, E)

    def forward(self, x: Tensor) -> Tensor:
        return self._layer(torch.cat([head(x) for head in self._heads], -1))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self._layer1, self._layer2 = nn.Linear(E, 4 * E), nn.Linear(4 * E, E)

    def forward(self, x: Tensor) -> Tensor:
        return self._layer2(torch.relu(self._layer1(x)))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self._heads, self._ff = Heads(), Network()
        self._norm1, self._norm2 = nn.LayerNorm(E), nn.LayerNorm(E)

    def forward(self, x: Tensor) -> Tensor:
        x = self._norm1(self._heads(x) + x)
        return self._norm2(self._ff(x) + x)


class Table(nn.Module):
    def __init__(self, rows: int):
        super().__init__()
        self._embedding = nn.Embedding(rows, E)


class SeedGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self._token_embeddings, self._position_embeddings = Table(V), Table(T)
        self._decoders = nn.ModuleList([DecoderLayer() for _ in range(L)])
        self._linear = nn.Linear(E, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self._token_embeddings._embedding(ids) + self._position_embeddings._embedding.weight
        for layer in self._decoders:
            x = layer(x)
        return self._linear(x)


def test_the_gpt_around_the_second_seeds_head(tmp_path):
    module = SeedGPT()
    right = in_torch(module, IDS)
    path = tmp_path / "gpt.pt"
    torch.save(module.state_dict(), path)
    opened = open_checkpoint(path)
    assert opened.family is FAMILIES["seed_gpt"]
    assert (opened.config.layer.attention.num_heads, opened.config.num_layers) == (N, L)
    assert_outputs(path, {"inputs": IDS}, right, "[logits]")
    there_and_back(path, tmp_path)
