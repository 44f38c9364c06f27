"""Settings of ``BertConfig``, in every spelling that ``transformers`` has written."""

from ..settings import Setting, SettingsTable

_NUMBER = (int, float)

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Our activation by every name in ``hidden_act`` that means it; the usual name comes first."""

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

SETTINGS = SettingsTable(
    understood={
        "architectures": Setting((list, str)),
        "attention_probs_dropout_prob": Setting(_NUMBER, 0.1),
        "classifier_dropout": Setting(_NUMBER),
        "hidden_act": Setting(str, "gelu"),
        "hidden_dropout_prob": Setting(_NUMBER, 0.1),
        "hidden_size": Setting(int),
        "id2label": Setting(dict),
        "intermediate_size": Setting(int),
        "layer_norm_eps": Setting(_NUMBER, 1e-12),
        "max_position_embeddings": Setting(int),
        "num_attention_heads": Setting(int),
        "num_hidden_layers": Setting(int),
        "num_labels": Setting(int),
        "tie_word_embeddings": Setting(bool, True),
        "type_vocab_size": Setting(int),
        "vocab_size": Setting(int),
    },
    bookkeeping=frozenset(
        {
            "_attn_implementation_autoset",
            "_commit_hash",
            "_name_or_path",
            "_num_labels",
            "attn_implementation",
            "bos_token_id",
            "chunk_size_feed_forward",
            "directionality",
            "do_sample",
            "dtype",
            "eos_token_id",
            "finetuning_task",
            "gradient_checkpointing",
            "initializer_range",
            "label2id",
            "language",
            "max_length",
            "model_type",
            "name",
            "output_attentions",
            "output_hidden_states",
            "output_past",
            "pad_token_id",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
            "prefix",
            "problem_type",
            "return_dict",
            "sep_token_id",
            "task_specific_params",
            "tokenizer_class",
            "torch_dtype",
            "torchscript",
            "transformers_version",
            "use_cache",
        }
    ),
    fixed={
        "add_cross_attention": (False,),
        "cross_attention_hidden_size": (None,),
        "is_decoder": (False,),
        "is_encoder_decoder": (False,),
        "position_embedding_type": ("absolute", None),
        "pruned_heads": ({}, None),
        "quantization_config": (None,),
        "tie_encoder_decoder": (False,),
    },
)
