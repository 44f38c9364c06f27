"""BERT (Devlin et al. 2019) as ``transformers`` stores it, with any of its heads.

Variants: those of every family of encoders, ``prefix`` under the name ``bert_prefix``. The tied
output layer may be stored too (``decoder_weight``, ``decoder_bias``), or alone (``no_embedding``,
``no_bias``).

Names and settings that other encoders took from BERT are imported from here.
"""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..family import LEFT_OUT
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect
from .family import EncoderFamily, Head, TiedCopy

_LAYER, _OURS = "encoder.layer.{i}", "layers.{i}"
EMBEDDINGS = {
    "embeddings.word_embeddings": "embedding.token_embed",
    "embeddings.position_embeddings": "embedding.position_embed",
    "embeddings.token_type_embeddings": "embedding.token_type_embed",
    "embeddings.LayerNorm": "embedding.embed_norm",
}
MODULES: Modules = EMBEDDINGS | {
    f"{_LAYER}.attention.self.query": f"{_OURS}.attention.q_proj",
    f"{_LAYER}.attention.self.key": f"{_OURS}.attention.k_proj",
    f"{_LAYER}.attention.self.value": f"{_OURS}.attention.v_proj",
    f"{_LAYER}.attention.output.dense": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.attention.output.LayerNorm": f"{_OURS}.attention_norm",
    f"{_LAYER}.intermediate.dense": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.output.dense": f"{_OURS}.feed_forward.down_proj",
    f"{_LAYER}.output.LayerNorm": f"{_OURS}.feed_forward_norm",
    "pooler.dense": "pooler_proj",
}
SIZES = {
    "vocab_size": ("embeddings.word_embeddings.weight", 0),
    "hidden_size": ("embeddings.word_embeddings.weight", 1),
    "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
    "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
    "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
}
BUFFERS = {"embeddings.position_ids": "arange", "embeddings.token_type_ids": "zeros"}
UNDERSTOOD = {
    **hf.ARCHITECTURES,
    "attention_probs_dropout_prob": Setting(NUMBER, 0.1),
    "hidden_act": Setting(str, "gelu"),
    "hidden_dropout_prob": Setting(NUMBER, 0.1),
    "hidden_size": SIZE,
    "intermediate_size": SIZE,
    "layer_norm_eps": Setting(NUMBER, 1e-12),
    "max_position_embeddings": SIZE,
    "num_attention_heads": SIZE,
    "num_hidden_layers": SIZE,
    "type_vocab_size": SIZE,
    "vocab_size": SIZE,
}
HEAD_BOOKKEEPING = frozenset({"classifier_dropout", "classifier_dropout_prob"})
STACK_KIND = StackKind(feed_forward=spec.FeedForwardConfig)


def read_encoder(
    values: Mapping[str, Any], max_seq_len: int | None = None, **embedding: Any
) -> spec.EncoderConfig:
    """Return the encoder that the settings describe.

    Args:
        values: Settings.
        max_seq_len: Number of positions; None means the setting's.
        **embedding: More of the embedding.
    """
    d_model, eps = require(values, "hidden_size"), values["layer_norm_eps"]
    return spec.EncoderConfig(
        layer=spec.TransformerEncoderLayerConfig(
            d_model=d_model,
            num_heads=require(values, "num_attention_heads"),
            d_ff=require(values, "intermediate_size"),
            dropout=values["hidden_dropout_prob"],
            activation=hf.read_activation(values, "hidden_act"),
            eps=eps,
            attention_dropout=values["attention_probs_dropout_prob"],
        ),
        num_layers=require(values, "num_hidden_layers"),
        embedding=spec.TextEmbeddingConfig(
            vocab_size=require(values, "vocab_size"),
            d_model=d_model,
            max_seq_len=max_seq_len or require(values, "max_position_embeddings"),
            num_token_types=require(values, "type_vocab_size"),
            norm=spec.NormConfig(eps=eps),
            dropout=values["hidden_dropout_prob"],
            **embedding,
        ),
    )


def read_masked_lm(
    values: Mapping[str, Any], rows: int | None = None, **options: Any
) -> spec.MaskedLMHeadConfig:
    """Return the masked LM head that the settings describe."""
    if values.get("tie_word_embeddings") is False:
        raise ValueError("tie_word_embeddings: false is not supported with a masked LM head")
    return spec.MaskedLMHeadConfig(
        d_model=values["hidden_size"],
        vocab_size=values["vocab_size"],
        activation=hf.read_activation(values, "hidden_act"),
        eps=values["layer_norm_eps"],
        **options,
    )


def write_encoder(encoder: spec.EncoderConfig, *, usual: str = "gelu") -> dict[str, Any]:
    """Return the settings that ``read_encoder`` reads; ``usual`` is their name of an activation."""
    layer, embedding = encoder.layers[0], expect(encoder.embedding, spec.TextEmbeddingConfig)
    return {
        "attention_probs_dropout_prob": layer.attention.attention_dropout,
        "hidden_act": hf.write_activation(layer.feed_forward.activation, usual),
        "hidden_dropout_prob": layer.dropout,
        "hidden_size": encoder.d_model,
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_norm_eps": layer.norm.of(1).eps,
        "num_attention_heads": layer.attention.num_heads,
        "num_hidden_layers": encoder.num_layers,
        "type_vocab_size": embedding.num_token_types,
        "vocab_size": embedding.vocab_size,
        "max_position_embeddings": embedding.max_seq_len,
    }


def _read_classifier(
    values: dict[str, Any], rows: int | None
) -> spec.SequenceClassificationHeadConfig:
    return spec.SequenceClassificationHeadConfig(**_labels(values, rows))


def _read_token_classifier(
    values: dict[str, Any], rows: int | None
) -> spec.TokenClassificationHeadConfig:
    return spec.TokenClassificationHeadConfig(**_labels(values, rows))


def _labels(values: dict[str, Any], rows: int | None) -> dict[str, Any]:
    dropout = values["classifier_dropout"]
    is_choice = "BertForMultipleChoice" in (values["architectures"] or ())
    return {
        "d_model": values["hidden_size"],
        "num_labels": 1 if is_choice else hf.label_count(values, rows),
        "dropout": values["hidden_dropout_prob"] if dropout is None else dropout,
    }


def _write(encoder: spec.EncoderConfig, heads: Mapping[str, HeadConfig]) -> dict[str, Any]:
    settings = write_encoder(encoder)
    for head in heads.values():
        if isinstance(head, spec.SequenceClassificationHeadConfig):
            is_usual = head.dropout == settings["hidden_dropout_prob"]
            settings["classifier_dropout"] = LEFT_OUT if is_usual else head.dropout
    return settings


BERT = EncoderFamily(
    name="bert",
    summary="BertModel and its heads (transformers), with or without bert., gamma/beta, buffers",
    model_types=("bert",),
    architectures={
        "BertForPreTraining": ("masked_lm", "next_sentence"),
        "BertForMaskedLM": ("masked_lm",),
        "BertForNextSentencePrediction": ("next_sentence",),
        "BertForSequenceClassification": ("sequence_classification",),
        "BertForMultipleChoice": ("sequence_classification",),
        "BertForTokenClassification": ("token_classification",),
        "BertForQuestionAnswering": ("question_answering",),
        "BertModel": (),
    },
    modules=MODULES,
    heads={
        "masked_lm": Head(
            {
                "cls.predictions.transform.dense": "transform_proj",
                "cls.predictions.transform.LayerNorm": "transform_norm",
                "cls.predictions.bias": "vocab_bias_param",
            },
            read_masked_lm,
        ),
        "next_sentence": Head(
            {"cls.seq_relationship": "classifier_proj"},
            lambda values, rows: spec.NextSentenceHeadConfig(d_model=values["hidden_size"]),
        ),
        "sequence_classification": Head({"classifier": "classifier_proj"}, _read_classifier),
        "token_classification": Head({"classifier": "classifier_proj"}, _read_token_classifier),
        "question_answering": Head(
            {"qa_outputs": "span_proj"},
            lambda values, rows: spec.QuestionAnsweringHeadConfig(d_model=values["hidden_size"]),
        ),
    },
    copies={
        "embeddings.word_embeddings.weight": TiedCopy(
            "cls.predictions.decoder.weight", "decoder_weight", "no_embedding"
        ),
        "cls.predictions.bias": TiedCopy("cls.predictions.decoder.bias", "decoder_bias", "no_bias"),
    },
    old_norm="LayerNorm",
    settings=hf.settings_table(
        UNDERSTOOD
        | {
            **hf.LABELS,
            "classifier_dropout": Setting(NUMBER),
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping={
            "directionality",
            "language",
            "name",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
        },
        fixed={"position_embedding_type": ("absolute", None)},
    ),
    sizes=SIZES,
    read=read_encoder,
    write=_write,
    stack_kind=STACK_KIND,
    prefix="bert.",
    prefix_variant="bert_prefix",
    buffers=BUFFERS,
    anew={},
)
