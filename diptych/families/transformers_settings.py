"""Settings that mean the same in every family of ``transformers``."""

from collections.abc import Collection, Mapping
from typing import Any

from .family import LEFT_OUT
from .settings import Setting, SettingsTable

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Our activation by every name that means it; the usual name comes first."""

BOOKKEEPING = frozenset(
    {
        "_attn_implementation",
        "_attn_implementation_autoset",
        "_commit_hash",
        "_name_or_path",
        "_num_labels",
        "attn_implementation",
        "bad_words_ids",
        "begin_suppress_tokens",
        "bos_token_id",
        "cache_implementation",
        "chunk_size_feed_forward",
        "decoder_start_token_id",
        "diversity_penalty",
        "do_sample",
        "dtype",
        "early_stopping",
        "encoder_no_repeat_ngram_size",
        "eos_token_id",
        "exponential_decay_length_penalty",
        "finetuning_task",
        "forced_bos_token_id",
        "forced_decoder_ids",
        "forced_eos_token_id",
        "gradient_checkpointing",
        "id2label",
        "initializer_factor",
        "initializer_range",
        "keys_to_ignore_at_inference",
        "label2id",
        "length_penalty",
        "max_length",
        "min_length",
        "model_type",
        "no_repeat_ngram_size",
        "num_beam_groups",
        "num_beams",
        "num_labels",
        "num_return_sequences",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "output_scores",
        "pad_token_id",
        "prefix",
        "pretraining_tp",
        "problem_type",
        "remove_invalid_values",
        "repetition_penalty",
        "return_dict",
        "return_dict_in_generate",
        "sep_token_id",
        "suppress_tokens",
        "task_specific_params",
        "temperature",
        "tf_legacy_loss",
        "tokenizer_class",
        "top_k",
        "top_p",
        "torch_dtype",
        "torchscript",
        "transformers_version",
        "typical_p",
        "unsloth_fixed",
        "unsloth_version",
        "use_bfloat16",
        "use_cache",
    }
)
"""Settings that change no number of a forward pass, in any family."""

FIXED: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "tie_encoder_decoder": (False,),
}
"""Settings that would change numbers, with the values that do not."""

ARCHITECTURES = {"architectures": Setting((list, str))}
LABELS = {"id2label": Setting(dict), "num_labels": Setting(int)}
"""Settings of a classifier; where there is none, they are bookkeeping."""


def settings_table(
    understood: Mapping[str, Setting],
    *,
    bookkeeping: Collection[str] = (),
    fixed: Mapping[str, tuple[Any, ...]] | None = None,
) -> SettingsTable:
    """Return a family's settings and, beside them, those that every family has.

    Args:
        understood: Settings that shape the component.
        bookkeeping: More settings that change no number.
        fixed: More settings that would, with the values that do not.
    """
    understood = ARCHITECTURES | {**understood}
    return SettingsTable(
        understood=understood,
        bookkeeping=(BOOKKEEPING | {*bookkeeping}) - understood.keys(),
        fixed=FIXED | {**(fixed or {})},
    )


def read_activation(values: Mapping[str, Any], key: str) -> str:
    """Return our name of the activation that a setting names.

    Raises:
        ValueError: If it names none of ours.
    """
    name = ACTIVATIONS.get(values[key])
    if name is None:
        raise ValueError(f"{key}: {values[key]!r} must be one of {', '.join(sorted(ACTIVATIONS))}")
    return name


def write_activation(activation: str, usual: str | None = None) -> str:
    """Return the usual name of one of our activations; a family's own goes first.

    Raises:
        ValueError: If it has none.
    """
    if usual is not None and ACTIVATIONS[usual] == activation:
        return usual
    for theirs, ours in ACTIVATIONS.items():
        if ours == activation:
            return theirs
    raise ValueError(
        f"activation={activation!r}, only {', '.join(dict.fromkeys(ACTIVATIONS.values()))}"
    )


def label_count(values: Mapping[str, Any], rows: int | None) -> int:
    """Return the number of labels of a classifier: theirs is 2 where nothing else is said.

    Args:
        values: Settings of ``LABELS``.
        rows: Of the classifier, where there is one.
    """
    return len(values["id2label"] or ()) or values["num_labels"] or rows or 2


def label_settings(num_labels: int) -> dict[str, Any]:
    """Return the settings of a classifier with labels without names."""
    names = {str(i): f"LABEL_{i}" for i in range(num_labels)}
    return {
        "id2label": names,
        "label2id": {name: int(i) for i, name in names.items()},
        "num_labels": LEFT_OUT,
    }
