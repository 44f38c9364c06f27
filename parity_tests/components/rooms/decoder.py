"""Decoders, alone and after an encoder."""

from dataclasses import replace
from typing import Any

from diptych.spec import AlibiConfig, DecoderConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, under
from parity_tests.components.room import EVERYTHING, IDS, Call, Example, Room, key_mask
from parity_tests.components.rooms.encoder import embed, encoder, run_layers
from parity_tests.components.rooms.logits_head import logits_head
from parity_tests.panels import stack_cases
from parity_tests.panels.stack_cases import DECODERS, ENCODER_DECODER
from parity_tests.support.sizes import B


def decoder(
    config: Any,
    tensors: Tensors,
    inputs: Array,
    *,
    token_type_ids=None,
    table: Array | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Embed, apply causal layers, make logits (Vaswani et al. 2017; Radford et al. 2018)."""
    x = embed(config, tensors, inputs, token_type_ids, options, table)
    found = run_layers(config, tensors, x, **options)
    if config.head is None:
        return found
    table = tensors.get("embedding.token_embed.weight") if table is None else table
    own = under("head", tensors)
    return found | {"logits": logits_head(config.head, own, found["output"], table)}


def encoder_decoder(
    config: Any,
    tensors: Tensors,
    inputs: Array,
    decoder_inputs: Array,
    *,
    key_mask: Array | None = None,
    decoder_key_mask: Array | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Encode, and decode what reads the encoder's output."""
    ours = under("encoder", tensors)
    encoded = encoder(config.encoder, ours, inputs, key_mask=key_mask, **options)
    decoded = decoder(
        config.decoder,
        under("decoder", tensors),
        decoder_inputs,
        table=ours["embedding.token_embed.weight"] if config.shares_tokens else None,
        memory=encoded["output"],
        memory_mask=key_mask,
        key_mask=decoder_key_mask,
        **options,
    )
    return {"encoded": encoded, "decoded": decoded}


def _call(name: str, config: DecoderConfig) -> Call:
    return lambda draw: ComponentCase(
        config,
        {"ids": draw.integers(stack_cases.VOCAB, B, 7)},
        {"key_mask": key_mask(7, 4), **EVERYTHING},
        is_slow=name != "local and global",
        is_working=name == "learned positions",
    )


def _encoder_decoder(draw):
    ids = draw.integers(stack_cases.VOCAB, B, 7)
    return ComponentCase(
        replace(ENCODER_DECODER, decoder=replace(ENCODER_DECODER.decoder, num_layers=1)),
        {"ids": ids, "decoder_ids": ids[:, :5]},
        {"key_mask": key_mask(7, 4), **EVERYTHING},
        is_working=True,
    )


DECODER = Room(
    Example(DECODERS["local and global"], (IDS % stack_cases.VOCAB,)),
    changes={
        "layer": stack_cases.block(),
        "num_layers": 3,
        "embedding": stack_cases.LEARNED,
        "final_norm": None,
        "position_bias": {"layer": stack_cases.block(), "position_bias": AlibiConfig()},
        "dropout": 0.5,
        "head": None,
    },
    formula=decoder,
    calls={f"Decoder, {name}": _call(name, config) for name, config in DECODERS.items()},
    is_slow=True,
)
ENCODER_DECODER_ROOM = Room(
    Example(ENCODER_DECODER, (IDS % stack_cases.VOCAB, IDS[:, :5] % stack_cases.VOCAB)),
    changes={
        "encoder": replace(stack_cases.ENCODER, num_layers=2),
        "decoder": replace(ENCODER_DECODER.decoder, num_layers=1),
    },
    formula=encoder_decoder,
    calls={"EncoderDecoder": _encoder_decoder},
    is_slow=True,
)
