"""BERT's settings to the component's config and back."""

from collections.abc import Mapping
from typing import Any

from ...spec import (
    Config,
    EncoderConfig,
    EncoderWithHeadsConfig,
    NextSentenceHeadConfig,
    NormConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
)
from ...spec.checks.sizes import Shape
from ..family import Variants
from ..settings import axis_sizes, check_layer_count, fill_sizes, layer_count, require
from ..transformers_settings import ACTIVATIONS, label_count
from .bert_settings import ARCHITECTURE_HEADS
from .parts import named_layer, read_embedding, read_layer, read_masked_lm, write_encoder

_WORDS = "embeddings.word_embeddings.weight"
_DECODER = "cls.predictions.decoder.weight"


def read_bert_config(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> Config:
    """Return the component's config; sizes that the settings lack are read from the shapes.

    Raises:
        ValueError: If a setting is missing or refused.
    """
    prefix = "bert." if "bert_prefix" in variants else ""
    values = _with_sizes(settings, shapes, prefix)
    d_model = require(values, "hidden_size")
    check_layer_count(values["num_hidden_layers"], shapes, "num_hidden_layers")
    encoder = EncoderConfig(
        layer=read_layer(values),
        num_layers=require(values, "num_hidden_layers"),
        embedding=read_embedding(values, require(values, "max_position_embeddings")),
        pooler=f"{prefix}pooler.dense.weight" in shapes,
    )
    heads: dict[str, Any] = {}
    if any(name.startswith("cls.predictions.") for name in shapes):
        heads["masked_lm"] = read_masked_lm(values)
    if any(name.startswith("cls.seq_relationship.") for name in shapes):
        heads["next_sentence"] = NextSentenceHeadConfig(d_model=d_model)
    if any(name.startswith("qa_outputs.") for name in shapes):
        heads["question_answering"] = QuestionAnsweringHeadConfig(d_model=d_model)
    if any(name.startswith("classifier.") for name in shapes):
        name, head = _classifier(values, shapes, d_model, encoder.pooler)
        heads[name] = head
    return EncoderWithHeadsConfig(encoder=encoder, **heads) if heads else encoder


def write_bert_config(config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings in the current spelling, the source's own kept where they agree.

    Raises:
        ValueError: If BERT has no such component.
    """
    encoder, heads = encoder_and_heads(config)
    embedding = encoder.embedding
    masked_lm = heads.get("masked_lm")
    layer = named_layer(encoder)
    if layer is None or embedding is None:
        raise ValueError("bert is an encoder of TransformerEncoderLayer with an embedding")
    plain = TextEmbeddingConfig(
        vocab_size=embedding.vocab_size,
        d_model=layer.d_model,
        max_seq_len=embedding.max_seq_len,
        num_token_types=embedding.num_token_types,
        norm=NormConfig(eps=layer.eps),
        dropout=layer.dropout,
    )
    faults = {
        "embedding without token types": not embedding.num_token_types,
        "embedding without positions": embedding.max_seq_len is None,
        "embedding with its own norm or dropout, or more parts": embedding != plain,
        "final norm, position bias or dropout of the output": encoder
        != EncoderConfig(
            layer=layer,
            num_layers=encoder.num_layers,
            embedding=embedding,
            pooler=encoder.pooler,
        ),
        "pre-norm layers": layer.norm_placement != "post",
        "masked LM head with its own eps or activation": masked_lm
        and (masked_lm.eps, masked_lm.activation) != (layer.eps, layer.activation),
        "sequence and token classifier at once": {
            "sequence_classification",
            "token_classification",
        }
        <= heads.keys(),
    }
    for fault, is_there in faults.items():
        if is_there:
            raise ValueError(f"bert has no {fault}")
    settings: dict[str, Any] = {**(source or {}), "model_type": "bert"}
    names = settings.get("architectures") or _architectures(heads)
    settings["architectures"] = [names] if isinstance(names, str) else names
    wanted = write_encoder(encoder) | {"max_position_embeddings": embedding.max_seq_len}
    if ACTIVATIONS.get(settings.get("hidden_act", "")) == layer.activation:
        del wanted["hidden_act"]
    return settings | wanted | _label_settings(settings, heads, layer.dropout)


def encoder_and_heads(config: Config) -> tuple[EncoderConfig, dict[str, Any]]:
    """Return the encoder's config and the heads by name, or raise ValueError if it is neither."""
    if isinstance(config, EncoderWithHeadsConfig):
        return config.encoder, dict(config.heads)
    if isinstance(config, EncoderConfig):
        return config, {}
    raise ValueError(f"bert has no {config.component}")


def _with_sizes(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], prefix: str
) -> dict[str, Any]:
    """Return the settings, those sizes that they lack read from the shapes."""
    values = {**settings}
    words, embeddings = f"{prefix}{_WORDS}", f"{prefix}embeddings"
    words = words if words in shapes else _DECODER
    places = {
        "vocab_size": (words, 0),
        "hidden_size": (words, 1),
        "max_position_embeddings": (f"{embeddings}.position_embeddings.weight", 0),
        "type_vocab_size": (f"{embeddings}.token_type_embeddings.weight", 0),
        "intermediate_size": (f"{prefix}encoder.layer.0.intermediate.dense.weight", 0),
    }
    fill_sizes(values, places, shapes)
    if values["num_hidden_layers"] is None:
        values["num_hidden_layers"] = layer_count(shapes, f"{prefix}encoder.layer.")
    return values


def _classifier(
    values: Mapping[str, Any], shapes: Mapping[str, Shape], d_model: int, pooler: bool
) -> tuple[str, SequenceClassificationHeadConfig]:
    architectures = values["architectures"] or []
    name = architectures if isinstance(architectures, str) else next(iter(architectures), None)
    heads = ARCHITECTURE_HEADS.get(name, ()) if name else ()
    kind: type[SequenceClassificationHeadConfig]
    if "token_classification" in heads or (not name and not pooler):
        head, kind = "token_classification", TokenClassificationHeadConfig
    elif "sequence_classification" in heads:
        head, kind = "sequence_classification", SequenceClassificationHeadConfig
    else:
        raise ValueError(
            f"architectures: {name!r} does not say what the classifier reads; give --set "
            "architectures=BertForSequenceClassification (or BertForTokenClassification)"
        )
    rows, _ = axis_sizes(shapes, "classifier.weight", 2)
    num_labels = 1 if name == "BertForMultipleChoice" else label_count(values, rows)
    dropout = values["classifier_dropout"]
    return head, kind(
        d_model=d_model,
        num_labels=num_labels,
        dropout=values["hidden_dropout_prob"] if dropout is None else dropout,
    )


def _architectures(heads: Mapping[str, Any]) -> list[str]:
    fitting = [name for name, ours in ARCHITECTURE_HEADS.items() if set(ours) == heads.keys()]
    return fitting[:1]


def _label_settings(
    settings: Mapping[str, Any], heads: Mapping[str, Any], hidden_dropout: float
) -> dict[str, Any]:
    """Return the settings of a classifier that differ from what the settings say already."""
    head = heads.get("sequence_classification") or heads.get("token_classification")
    if head is None:
        return {}
    wanted: dict[str, Any] = {}
    dropout = settings.get("classifier_dropout")
    if head.dropout != (hidden_dropout if dropout is None else dropout):
        wanted["classifier_dropout"] = head.dropout
    is_choice = "BertForMultipleChoice" in (settings.get("architectures") or ())
    labels = (
        len(settings.get("id2label") or "..")
        if "num_labels" not in settings
        else settings["num_labels"]
    )
    if head.num_labels != labels and not is_choice:
        names = {str(i): f"LABEL_{i}" for i in range(head.num_labels)}
        wanted |= {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}
    return wanted
