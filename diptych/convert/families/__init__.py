"""Families of foreign checkpoints: one file each, and this registry."""

from .albert import ALBERT
from .bart import BART
from .bert import BERT
from .bloom import BLOOM
from .clip import CLIP
from .cohere import COHERE
from .decoder import DecoderFamily
from .deepseek_v3 import DEEPSEEK_V3
from .dinov2 import DINOV2
from .distilbert import DISTILBERT
from .falcon import FALCON
from .family import RECIPES, Family, Recreated, Variants, recreate
from .gemma import GEMMA
from .gemma2 import GEMMA2
from .gemma3 import GEMMA3
from .gpt2 import GPT2
from .gpt_neox import GPT_NEOX
from .gpt_oss import GPT_OSS
from .llama import LLAMA
from .llama_meta import LLAMA_META
from .mistral import MISTRAL
from .mixtral import MIXTRAL
from .modernbert import MODERNBERT
from .mpt import MPT
from .nanogpt import MINGPT, NANOGPT
from .olmo2 import OLMO2
from .opt import OPT
from .phi3 import PHI3
from .qwen2 import QWEN2
from .qwen3 import QWEN3
from .qwen3_moe import QWEN3_MOE
from .roberta import ROBERTA
from .seed_encoder import SEED_ENCODER
from .seed_gpt import SEED_GPT
from .seed_head import SEED_HEAD
from .siglip import SIGLIP
from .starcoder2 import STARCODER2
from .t5 import T5
from .torch_layers import TORCH_LAYERS
from .user import load_family
from .vit import VIT
from .whisper import WHISPER

_ALL = (
    BERT,
    ROBERTA,
    DISTILBERT,
    ALBERT,
    MODERNBERT,
    GPT2,
    LLAMA,
    LLAMA_META,
    MISTRAL,
    QWEN2,
    QWEN3,
    GEMMA,
    GEMMA2,
    GEMMA3,
    PHI3,
    GPT_NEOX,
    OLMO2,
    OPT,
    BLOOM,
    FALCON,
    MPT,
    STARCODER2,
    COHERE,
    MIXTRAL,
    QWEN3_MOE,
    GPT_OSS,
    DEEPSEEK_V3,
    T5,
    BART,
    WHISPER,
    VIT,
    DINOV2,
    CLIP,
    SIGLIP,
    NANOGPT,
    MINGPT,
    TORCH_LAYERS,
    SEED_ENCODER,
    SEED_GPT,
    SEED_HEAD,
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every family by the name that ``--family`` takes."""


def named_family(family: str | Family) -> Family:
    """Return a family by name, or the family itself.

    Raises:
        ValueError: If there is none of that name.
    """
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        raise ValueError(f"family={family!r} must be one of {', '.join(FAMILIES)}")
    return FAMILIES[family]


__all__ = [
    "FAMILIES",
    "RECIPES",
    "DecoderFamily",
    "Family",
    "Recreated",
    "Variants",
    "load_family",
    "named_family",
    "recreate",
]
