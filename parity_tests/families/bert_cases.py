"""BERT checkpoints in every spelling: tensors, settings, and the variants found in them."""

import numpy as np

from ..support.checkpoints import BERT_CONFIG, POSITION_IDS, POSITIONS, bert_tensors

WORDS_NAME = "bert.embeddings.word_embeddings.weight"


def named(*architectures, **settings):
    return {**BERT_CONFIG, "architectures": list(architectures), **settings}


def tied(tensors, *copies):
    """Return tensors with copies of tied ones, or with the copy in place of the original."""
    originals = {
        "cls.predictions.decoder.weight": WORDS_NAME,
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    return tensors | {copy: tensors[originals[copy]].copy() for copy in copies}


def without(tensors, *names):
    return {name: value for name, value in tensors.items() if name not in names}


DECODER = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
MLM = bert_tensors("masked_lm", prefix="bert.", pooler=False)
CASES = {
    "BertModel": (bert_tensors(), BERT_CONFIG, ()),
    "no pooler": (bert_tensors(pooler=False), BERT_CONFIG, ()),
    "prefix": (bert_tensors(prefix="bert."), BERT_CONFIG, ("bert_prefix",)),
    "gamma": (bert_tensors(norm=("gamma", "beta")), BERT_CONFIG, ("gamma_beta",)),
    "position_ids": (bert_tensors() | POSITION_IDS, BERT_CONFIG, ()),
    "half": (bert_tensors(dtype=np.float16), BERT_CONFIG, ()),
    "pretraining": (
        bert_tensors("masked_lm", "next_sentence", prefix="bert."),
        named("BertForPreTraining"),
        ("bert_prefix",),
    ),
    "old pretraining": (
        tied(
            bert_tensors("masked_lm", "next_sentence", prefix="bert.", norm=("gamma", "beta"))
            | {"bert.embeddings.position_ids": np.arange(POSITIONS)[None]},
            DECODER[0],
        ),
        named("BertForPreTraining"),
        ("bert_prefix", "gamma_beta", "decoder_weight"),
    ),
    "masked LM": (MLM, named("BertForMaskedLM"), ("bert_prefix",)),
    "LM head": (MLM, named("BertLMHeadModel"), ("bert_prefix",)),
    "tied copies": (
        tied(MLM, *DECODER),
        named("BertForMaskedLM"),
        ("bert_prefix", "decoder_weight", "decoder_bias"),
    ),
    "only the copies": (
        without(tied(MLM, *DECODER), WORDS_NAME, "cls.predictions.bias"),
        named("BertForMaskedLM"),
        ("bert_prefix", "decoder_weight", "decoder_bias", "no_embedding", "no_bias"),
    ),
    "next sentence": (
        bert_tensors("next_sentence", prefix="bert."),
        named("BertForNextSentencePrediction"),
        ("bert_prefix",),
    ),
    "sequence": (
        bert_tensors(3, prefix="bert."),
        named("BertForSequenceClassification", id2label={"0": "a", "1": "b", "2": "c"}),
        ("bert_prefix",),
    ),
    "sequence without prefix": (
        bert_tensors(2),
        named("BertForSequenceClassification", classifier_dropout=0.3),
        (),
    ),
    "choice": (bert_tensors(1, prefix="bert."), named("BertForMultipleChoice"), ("bert_prefix",)),
    "token": (
        bert_tensors(4, prefix="bert.", pooler=False),
        named("BertForTokenClassification", num_labels=4),
        ("bert_prefix",),
    ),
    "old token, with a pooler": (
        bert_tensors(4, prefix="bert."),
        named("BertForTokenClassification", num_labels=4),
        ("bert_prefix",),
    ),
    "question answering": (
        bert_tensors("question_answering", prefix="bert.", pooler=False),
        named("BertForQuestionAnswering"),
        ("bert_prefix",),
    ),
}
