"""A tiny model of every family of encoder-decoders, or several where its files differ."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers

from parity_tests.support.tiny_transformers import (
    PADDING,
    VOCAB,
    FamilyCase,
    our_text_inputs,
    slow,
    text_inputs,
)

DECODED = 7  # tokens of the decoder
FRAMES = 26  # of a spectrogram
SPECIAL = {"pad_token_id": PADDING, "bos_token_id": 0, "eos_token_id": 2}
LISTS = {
    "encoder_hidden_states": "[encoded][hidden_states]",
    "encoder_attentions": "[encoded][attention_weights]",
    "decoder_hidden_states": "[decoded][hidden_states]",
    "decoder_attentions": "[decoded][attention_weights]",
    "cross_attentions": "[decoded][cross_attention_weights]",
}
ENCODER_LISTS = {"hidden_states": "[hidden_states]", "attentions": "[attention_weights]"}


def decoder_inputs() -> dict[str, np.ndarray]:
    """Return what the decoder reads, the first with two tokens of padding at its end."""
    ids = np.random.default_rng(1).integers(3, VOCAB - 1, (2, DECODED))
    mask = np.ones_like(ids)
    ids[0, -2:], mask[0, -2:] = PADDING, 0
    return {"decoder_input_ids": ids, "decoder_attention_mask": mask}


def two_texts() -> dict[str, np.ndarray]:
    """Return a text for the encoder and one for the decoder."""
    return text_inputs() | decoder_inputs()


def long_text() -> dict[str, np.ndarray]:
    """Return a text of 500 tokens for the encoder, and one for the decoder."""
    ids = np.random.default_rng(2).integers(3, VOCAB - 1, (2, 500))
    mask = np.ones_like(ids)
    ids[1, -3:], mask[1, -3:] = PADDING, 0
    return {"input_ids": ids, "attention_mask": mask} | decoder_inputs()


def our_two_texts(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same texts by our names."""
    encoder = our_text_inputs(inputs)
    return {
        "inputs": encoder["inputs"],
        "decoder_inputs": inputs["decoder_input_ids"],
        "key_mask": encoder["key_mask"],
        "decoder_key_mask": inputs["decoder_attention_mask"].astype(bool),
    }


def translation(family: str, name: str, config: str, **settings: Any) -> FamilyCase:
    """Return a case of an encoder-decoder with a head, or without one."""
    return FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=two_texts,
        ours=our_two_texts,
        outputs={"logits": "[decoded][logits]"} if "Conditional" in name else {},
        lists=LISTS,
    )


def speech() -> dict[str, np.ndarray]:
    """Return a spectrogram for the encoder and a text for the decoder."""
    features = np.random.default_rng(3).standard_normal((2, 10, FRAMES)).astype(np.float32)
    return {"input_features": features} | decoder_inputs()


def our_speech(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same by our names."""
    return {
        "inputs": inputs["input_features"],
        "decoder_inputs": inputs["decoder_input_ids"],
        "decoder_key_mask": inputs["decoder_attention_mask"].astype(bool),
    }


def transcription(name: str, **settings: Any) -> FamilyCase:
    """Return a case of Whisper."""
    case = translation("whisper", name, "WhisperConfig", **settings)
    return replace(case, inputs=speech, ours=our_speech)


def untie(model: Any) -> None:
    """Give T5 an output layer of its own: ``transformers`` 5 ties every one that it makes anew."""
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())


T5 = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 44,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "layer_norm_epsilon": 1e-5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
    **SPECIAL,
}
T5_V11 = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

BART = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 44,
    "decoder_ffn_dim": 52,
    "decoder_start_token_id": 2,
    **SPECIAL,
}
WHISPER = BART | {
    "num_mel_bins": 10,
    "max_source_positions": FRAMES // 2,
    "max_target_positions": 20,
}

ENCODER_DECODERS = {
    "t5": translation("t5", "T5ForConditionalGeneration", "T5Config", **T5),
    "t5 1.1": replace(
        translation("t5", "T5ForConditionalGeneration", "T5Config", **T5_V11), prepare=untie
    ),
    "t5, tied and unscaled": translation("t5", "T5ForConditionalGeneration", "T5Config", **T5_V11),
    "t5 base": slow(translation("t5", "T5Model", "T5Config", **T5)),
    "t5, 500 tokens": replace(
        translation(
            "t5",
            "T5Model",
            "T5Config",
            **T5
            | {
                "num_layers": 1,
                "num_decoder_layers": 1,
                "relative_attention_num_buckets": 32,
                "relative_attention_max_distance": 128,
            },
        ),
        inputs=long_text,
    ),
    "t5 encoder": FamilyCase(
        family="t5",
        model=transformers.T5EncoderModel,
        config=partial(transformers.T5Config, **T5_V11),
        inputs=text_inputs,
        ours=our_text_inputs,
        outputs={},
        lists=ENCODER_LISTS,
    ),
    "bart": translation(
        "bart", "BartForConditionalGeneration", "BartConfig", **BART, max_position_embeddings=64
    ),
    "bart, scaled": translation(
        "bart",
        "BartForConditionalGeneration",
        "BartConfig",
        **BART,
        max_position_embeddings=64,
        scale_embedding=True,
        activation_function="relu",
    ),
    "bart base, 500 tokens": replace(
        translation(
            "bart",
            "BartModel",
            "BartConfig",
            **BART | {"encoder_layers": 1, "decoder_layers": 1},
            max_position_embeddings=512,
        ),
        inputs=long_text,
    ),
    "whisper": transcription("WhisperForConditionalGeneration", **WHISPER),
    "whisper, untied": slow(
        transcription("WhisperForConditionalGeneration", **WHISPER, tie_word_embeddings=False)
    ),
    "whisper base": slow(transcription("WhisperModel", **WHISPER)),
}
