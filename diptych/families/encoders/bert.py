"""BERT (Devlin et al. 2019) as ``transformers`` stores it, with any of its heads.

Variants: ``bert_prefix`` (names begin with ``bert.``), ``gamma_beta`` (layer norms of old files),
``decoder_weight`` and ``decoder_bias`` (the tied output layer is stored too), ``no_embedding`` and
``no_bias`` (only the tied copy is stored).
"""

from collections.abc import Collection, Mapping

from ...rules.rules import Rule, rule
from ...rules.transforms import Tie
from ...spec import Config, EncoderWithHeadsConfig
from ..family import Family, Variants
from .bert_config import encoder_and_heads, read_bert_config, write_bert_config
from .bert_settings import SETTINGS

_LAYER, _OURS = "encoder.layer.{i}", "layers.{i}"
EMBEDDINGS = {
    "embeddings.word_embeddings": "embedding.token_embed",
    "embeddings.position_embeddings": "embedding.position_embed",
    "embeddings.token_type_embeddings": "embedding.token_type_embed",
}
LINEARS = {
    f"{_LAYER}.attention.self.query": f"{_OURS}.attention.q_proj",
    f"{_LAYER}.attention.self.key": f"{_OURS}.attention.k_proj",
    f"{_LAYER}.attention.self.value": f"{_OURS}.attention.v_proj",
    f"{_LAYER}.attention.output.dense": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.intermediate.dense": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.output.dense": f"{_OURS}.feed_forward.down_proj",
    "pooler.dense": "pooler_proj",
}
NORMS = {
    "embeddings.LayerNorm": "embedding.embed_norm",
    f"{_LAYER}.attention.output.LayerNorm": f"{_OURS}.attention_norm",
    f"{_LAYER}.output.LayerNorm": f"{_OURS}.feed_forward_norm",
}
_HEAD_LINEARS = {
    "cls.predictions.transform.dense": "masked_lm.transform_proj",
    "cls.seq_relationship": "next_sentence.classifier_proj",
    "qa_outputs": "question_answering.span_proj",
}
_CLASSIFIER, _TRANSFORM_NORM = "classifier", "cls.predictions.transform.LayerNorm"
_WORDS = "embeddings.word_embeddings.weight"
_DECODER, _BIAS = "cls.predictions.decoder", "cls.predictions.bias"
_BUFFERS = {"embeddings.position_ids": "arange", "embeddings.token_type_ids": "zeros"}


def _find_variants(names: Collection[str]) -> Variants:
    found = {
        "bert_prefix": any(name.startswith("bert.") for name in names),
        "gamma_beta": any(name.endswith(".LayerNorm.gamma") for name in names),
        "decoder_weight": f"{_DECODER}.weight" in names,
        "decoder_bias": f"{_DECODER}.bias" in names,
        "no_embedding": not {_WORDS, f"bert.{_WORDS}"} & set(names),
        "no_bias": _BIAS not in names,
    }
    found["no_embedding"] &= found["decoder_weight"]
    found["no_bias"] &= found["decoder_bias"]
    return tuple(name for name, is_found in found.items() if is_found)


def _usual_variants(config: Config) -> Variants:
    return ("bert_prefix",) if isinstance(config, EncoderWithHeadsConfig) else ()


def _rules(config: Config, variants: Variants) -> tuple[Rule, ...]:
    _, heads = encoder_and_heads(config)
    theirs = "bert." if "bert_prefix" in variants else ""
    ours = "encoder." if heads else ""
    weight, bias = ("gamma", "beta") if "gamma_beta" in variants else ("weight", "bias")
    rules = [
        rule(f"{theirs}{name}.weight", f"{ours}{to}.weight") for name, to in EMBEDDINGS.items()
    ]
    rules += _pairs(LINEARS, theirs, ours) + _pairs(NORMS, theirs, ours, weight, bias)
    rules += _pairs(_HEAD_LINEARS)
    for name in {"sequence_classification", "token_classification"} & heads.keys():
        rules += _pairs({_CLASSIFIER: f"{name}.classifier_proj"})
    if "masked_lm" in heads:
        rules += _pairs({_TRANSFORM_NORM: "masked_lm.transform_norm"}, "", "", weight, bias)
        rules[0] = _tied(
            f"{theirs}{_WORDS}", f"{_DECODER}.weight", rules[0].target, variants, "no_embedding"
        )
        rules.append(
            _tied(_BIAS, f"{_DECODER}.bias", ("masked_lm.vocab_bias_param",), variants, "no_bias")
        )
    return tuple(rules)


def _tied(
    name: str, copy: str, target: tuple[str, ...], variants: Variants, only_copy: str
) -> Rule:
    if only_copy in variants:
        return rule(copy, target)
    if f"decoder_{copy.rpartition('.')[2]}" in variants:
        return rule((name, copy), target, Tie(2))
    return rule(name, target)


def _pairs(
    modules: Mapping[str, str],
    theirs: str = "",
    ours: str = "",
    weight: str = "weight",
    bias: str = "bias",
) -> list[Rule]:
    return [
        rule(f"{theirs}{name}.{leaf}", f"{ours}{to}.{our_leaf}")
        for name, to in modules.items()
        for leaf, our_leaf in ((weight, "weight"), (bias, "bias"))
    ]


def _with_prefix(names: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names for prefix in ("", "bert."))


BERT = Family(
    name="bert",
    summary="BertModel and its heads (transformers), with or without bert., gamma/beta, buffers",
    model_types=("bert",),
    templates=(
        *_with_prefix([f"{name}.weight" for name in EMBEDDINGS]),
        *_with_prefix([f"{name}.{leaf}" for name in LINEARS for leaf in ("weight", "bias")]),
        *_with_prefix(
            [f"{n}.{leaf}" for n in NORMS for leaf in ("weight", "bias", "gamma", "beta")]
        ),
        *_with_prefix(list(_BUFFERS)),
        *(f"{_TRANSFORM_NORM}.{leaf}" for leaf in ("weight", "bias", "gamma", "beta")),
        *(
            f"{name}.{leaf}"
            for name in (*_HEAD_LINEARS, _CLASSIFIER, _DECODER)
            for leaf in ("weight", "bias")
        ),
        _BIAS,
    ),
    settings=SETTINGS,
    find_variants=_find_variants,
    usual_variants=_usual_variants,
    read_config=read_bert_config,
    write_config=write_bert_config,
    rules=_rules,
    buffers={name: _BUFFERS[name.removeprefix("bert.")] for name in _with_prefix(list(_BUFFERS))},
)
