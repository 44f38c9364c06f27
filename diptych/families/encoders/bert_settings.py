"""Settings of ``BertConfig``, in every spelling that ``transformers`` has written."""

from ..settings import Setting, SettingsTable
from ..transformers_settings import BOOKKEEPING, FIXED, LABELS, NUMBER
from .parts import UNDERSTOOD

ARCHITECTURE_HEADS = {
    "BertForPreTraining": ("masked_lm", "next_sentence"),
    "BertForMaskedLM": ("masked_lm",),
    "BertForNextSentencePrediction": ("next_sentence",),
    "BertForSequenceClassification": ("sequence_classification",),
    "BertForMultipleChoice": ("sequence_classification",),
    "BertForTokenClassification": ("token_classification",),
    "BertForQuestionAnswering": ("question_answering",),
    "BertModel": (),
}
"""Our heads by the class name in ``architectures``; the first class with the heads is written."""

_UNDERSTOOD = {
    **UNDERSTOOD,
    **LABELS,
    "classifier_dropout": Setting(NUMBER),
    "tie_word_embeddings": Setting(bool, True),
}
_BOOKKEEPING = {
    "directionality",
    "language",
    "name",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
}
SETTINGS = SettingsTable(
    understood=_UNDERSTOOD,
    bookkeeping=(BOOKKEEPING | _BOOKKEEPING) - _UNDERSTOOD.keys(),
    fixed=FIXED | {"position_embedding_type": ("absolute", None)},
)
