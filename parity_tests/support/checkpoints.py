"""Small checkpoints for the conversion tests, made in the test and read by both sides."""

import json
from pathlib import Path

import numpy as np

from diptych.formats import FORMATS
from diptych.formats.output import Planned
from diptych.tensors.dtypes import code_of

LAYERS, WIDTH, HIDDEN, WORDS, POSITIONS, TYPES, HEADS = 2, 6, 7, 11, 5, 3, 2

BERT_CONFIG = {
    "architectures": ["BertModel"],
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": WIDTH,
    "initializer_range": 0.02,
    "intermediate_size": HIDDEN,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "model_type": "bert",
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "pad_token_id": 0,
    "type_vocab_size": TYPES,
    "vocab_size": WORDS,
}
POSITION_IDS = {"embeddings.position_ids": np.arange(POSITIONS)[None]}


def write_checkpoint(folder, tensors, config=None, *, kind="safetensors", name=None):
    """Write a folder with weights and, if given, a config.json; return the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plan = [Planned(key, code_of(value.dtype), value.shape) for key, value in tensors.items()]
    name = name or FORMATS[kind].name_in("hf")
    metadata = {"format": "pt"}
    FORMATS[kind].write(folder, plan, iter(tensors.items()), file_name=name, metadata=metadata)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return folder


def write_bert(folder):
    """Write a tiny BERT as it is published, with companions and files that are none; return it."""
    write_checkpoint(folder, bert_tensors() | POSITION_IDS, BERT_CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text("{}")
    (folder / ".hidden.json").write_text("{}")
    (folder / "training_args.bin").write_bytes(b"no weights")
    return folder


def bert_tensors(*heads, prefix="", pooler=True, norm=("weight", "bias"), dtype=np.float32):
    """Return the tensors of a tiny BERT with random values, as transformers names them."""
    random = np.random.default_rng(0)
    shapes = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (TYPES, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
        shapes |= _linear(f"{layer}.intermediate.dense", HIDDEN, WIDTH)
        shapes |= _linear(f"{layer}.output.dense", WIDTH, HIDDEN)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    shapes |= _linear("pooler.dense", WIDTH, WIDTH) if pooler else {}
    shapes |= {f"{name}.{leaf}": (WIDTH,) for name in norms for leaf in norm}
    shapes = {f"{prefix}{name}": shape for name, shape in shapes.items()}
    if "masked_lm" in heads:
        shapes |= _linear("cls.predictions.transform.dense", WIDTH, WIDTH)
        shapes |= {f"cls.predictions.transform.LayerNorm.{leaf}": (WIDTH,) for leaf in norm}
        shapes["cls.predictions.bias"] = (WORDS,)
    if "next_sentence" in heads:
        shapes |= _linear("cls.seq_relationship", 2, WIDTH)
    if "question_answering" in heads:
        shapes |= _linear("qa_outputs", 2, WIDTH)
    for head in heads:
        if isinstance(head, int):
            shapes |= _linear("classifier", head, WIDTH)
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def stored_tensors(folder):
    """Return every tensor of a checkpoint by its name on disk."""
    from diptych.formats.find import find_container

    return {name: tensor.read() for name, tensor in find_container(Path(folder)).tensors.items()}


def assert_same_tensors(a, b):
    """Fail unless two dictionaries hold the same names, dtypes, shapes and bytes."""
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name


def _linear(name, rows, columns):
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def write_bert_folder(folder: Path) -> Path:
    """Write a tiny BERT with companions, one of them in a subfolder."""
    write_checkpoint(folder, bert_tensors(), BERT_CONFIG)
    (folder / "vocab.txt").write_text("a\nb\n")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text("{}")
    return folder
