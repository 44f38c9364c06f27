"""A plan is made from headers only and accounts for every tensor and file."""

import json

import numpy as np
import pytest

from diptych.convert import open_checkpoint
from diptych.convert.plan import make_plan
from diptych.convert.run import run_steps
from diptych.formats.json import render_json
from diptych.formats.output import Planned
from diptych.formats.tensor import Tensor
from diptych.spec import CheckpointError

from ..support.checkpoints import BERT_CONFIG, bert_tensors, write_checkpoint

POSITION_IDS = {"embeddings.position_ids": np.arange(5)[None] * 2}


@pytest.fixture
def checkpoint(tmp_path):
    folder = write_checkpoint(tmp_path / "source", bert_tensors() | POSITION_IDS, BERT_CONFIG)
    (folder / "vocab.txt").write_text("a\n")
    return open_checkpoint(folder)


@pytest.mark.parametrize("to", ["hf", "torch", "flax"])
def test_no_parameter_is_read_for_a_plan(checkpoint, monkeypatch, to):
    def refuse(tensor):
        raise AssertionError(f"{tensor.name} was read")

    monkeypatch.setattr(Tensor, "read", refuse)
    plan = make_plan(checkpoint, to=to)
    assert len(plan.tensors) == len(bert_tensors()) + 1
    assert plan.nbytes == sum(x.nbytes for x in (bert_tensors() | POSITION_IDS).values())


@pytest.mark.parametrize("to", ["hf", "torch", "flax"])
@pytest.mark.parametrize("dtype", [None, "F16", "BF16"])
def test_what_is_planned_is_what_comes(checkpoint, to, dtype):
    from diptych.tensors.dtypes import code_of

    plan = make_plan(checkpoint, to=to, dtype=dtype)
    written = run_steps(plan)
    assert plan.tensors == tuple(
        Planned(name, code_of(values.dtype), values.shape) for name, values in written.items()
    )
    assert list(written) == sorted(written)
    buffer = "embeddings.position_ids" if to == "hf" else "buffers.embeddings.position_ids"
    assert written[buffer].tolist() == POSITION_IDS["embeddings.position_ids"].tolist()


def test_the_manifest_says_where_it_came_from(checkpoint):
    body = make_plan(checkpoint, to="flax").body
    assert body == {
        "version": 1,
        "layout": "flax",
        "component": "Encoder",
        "family": "bert",
        "family_version": 1,
        "buffers": ["embeddings.position_ids"],
    }
    assert make_plan(checkpoint, to="flax").companions.keys() == {"vocab.txt"}


def test_configs_of_each_layout(checkpoint):
    hf = make_plan(checkpoint, to="hf").files
    assert hf == {"config.json": render_json(BERT_CONFIG)}
    flax = make_plan(checkpoint, to="flax").files
    assert flax.keys() == {"config.json", "source_config.json"}
    own = json.loads(flax["config.json"])
    assert own == {"component": "Encoder", "config": json.loads(json.dumps(own["config"]))}


def test_a_component_that_no_family_holds_is_refused(tmp_path):
    from diptych.convert import write_model
    from diptych.spec import EmbeddingConfig, LayerNormConfig, TransformerEncoderLayerConfig

    def written(config, name):
        tensors = {n: np.ones(leaf.shape, np.float32) for n, leaf in config.leaves().items()}
        component = config.component
        write_model(
            tmp_path / name, component=component, config=config, tensors=tensors, layout="torch"
        )
        return open_checkpoint(tmp_path / name)

    table = written(EmbeddingConfig(num_embeddings=3, d_model=2), "table")
    with pytest.raises(CheckpointError, match="Embedding: no family holds it"):
        make_plan(table, to="hf")
    norm = written(LayerNormConfig(d_model=2), "norm")
    assert make_plan(norm, to="hf").body["family"] == "seed_encoder"
    layer = written(TransformerEncoderLayerConfig(d_model=2, num_heads=1, d_ff=3), "layer")
    with pytest.raises(CheckpointError, match="bert has no TransformerEncoderLayer"):
        make_plan(open_checkpoint(layer.path, family="bert"), to="hf")
