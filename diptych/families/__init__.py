"""Families of foreign checkpoints: one file each, and this registry."""

from .decoders.bloom import BLOOM
from .decoders.cohere import COHERE
from .decoders.deepseek_v3 import DEEPSEEK_V3
from .decoders.falcon import FALCON
from .decoders.family import DecoderFamily
from .decoders.gemma import GEMMA
from .decoders.gemma2 import GEMMA2
from .decoders.gemma3 import GEMMA3
from .decoders.gpt2 import GPT2
from .decoders.gpt_neox import GPT_NEOX
from .decoders.gpt_oss import GPT_OSS
from .decoders.llama import LLAMA
from .decoders.llama_meta import LLAMA_META
from .decoders.mistral import MISTRAL
from .decoders.mixtral import MIXTRAL
from .decoders.mpt import MPT
from .decoders.olmo2 import OLMO2
from .decoders.opt import OPT
from .decoders.phi3 import PHI3
from .decoders.qwen2 import QWEN2
from .decoders.qwen3 import QWEN3
from .decoders.qwen3_moe import QWEN3_MOE
from .decoders.starcoder2 import STARCODER2
from .encoder_decoders.bart import BART
from .encoder_decoders.t5 import T5
from .encoder_decoders.whisper import WHISPER
from .encoders.albert import ALBERT
from .encoders.bert import BERT
from .encoders.distilbert import DISTILBERT
from .encoders.modernbert import MODERNBERT
from .encoders.roberta import ROBERTA
from .family import RECIPES, Family, Recreated, Variants, recreate
from .training_files.nanogpt import MINGPT, NANOGPT
from .training_files.seed_encoder import SEED_ENCODER
from .training_files.seed_gpt import SEED_GPT
from .training_files.seed_head import SEED_HEAD
from .training_files.torch_layers import TORCH_LAYERS
from .user import load_family
from .vision.clip import CLIP
from .vision.dinov2 import DINOV2
from .vision.siglip import SIGLIP
from .vision.vit import VIT

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
