"""Tiny models of the families of encoders."""

from functools import partial
from typing import Any

import numpy as np
import transformers

from parity_tests.support.tiny_transformers import PADDING, VOCAB, FamilyCase, slow, text_inputs

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": PADDING,
}
LISTS = {"hidden_states": "[hidden_states]", "attentions": "[attention_weights]"}


def our_inputs(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return prompts by our names."""
    return {"inputs": inputs["input_ids"], "key_mask": inputs["attention_mask"].astype(bool)}


def encoder(family: str, name: str, config: str, **settings: Any) -> FamilyCase:
    """Return a case of an encoder with its masked LM head, or without."""
    has_head = "MaskedLM" in name
    place = "[encoded]" if has_head else ""
    output = {"last_hidden_state": "[output]", "pooler_output": "[pooled]"}
    return FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=text_inputs,
        ours=our_inputs,
        outputs={"logits": "[masked_lm]"} if has_head else output,
        lists={theirs: f"{place}{ours}" for theirs, ours in LISTS.items()},
        last=f"{place}[output]",
    )


ROBERTA = SIZES | {"type_vocab_size": 1, "bos_token_id": 0, "eos_token_id": 2}
ALBERT = SIZES | {"embedding_size": 20, "type_vocab_size": 2}
DISTILBERT = {
    "vocab_size": VOCAB,
    "max_position_embeddings": 64,
    "n_layers": 3,
    "n_heads": 4,
    "dim": 32,
    "hidden_dim": 44,
    "pad_token_id": PADDING,
}
MODERNBERT = SIZES | {
    "num_hidden_layers": 4,
    "local_attention": 6,
    "cls_token_id": 0,
    "sep_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
ENCODERS = {
    "roberta": encoder("roberta", "RobertaForMaskedLM", "RobertaConfig", **ROBERTA),
    "roberta base": slow(encoder("roberta", "RobertaModel", "RobertaConfig", **ROBERTA)),
    "xlm-roberta": slow(encoder("roberta", "XLMRobertaForMaskedLM", "XLMRobertaConfig", **ROBERTA)),
    "distilbert": encoder("distilbert", "DistilBertForMaskedLM", "DistilBertConfig", **DISTILBERT),
    "albert": encoder("albert", "AlbertForMaskedLM", "AlbertConfig", **ALBERT),
    "albert base": slow(encoder("albert", "AlbertModel", "AlbertConfig", **ALBERT)),
    "modernbert": encoder("modernbert", "ModernBertForMaskedLM", "ModernBertConfig", **MODERNBERT),
}
