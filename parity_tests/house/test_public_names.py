"""The public names of every package, so that one that vanishes or appears is seen."""

from importlib import import_module

import pytest

PANEL = """
    AttentionPooling AudioEncoder Block BlockOutput Decoder DualEncoder
    DualEncoderOutput Embedding Encoder EncoderDecoder EncoderDecoderOutput
    EncoderWithHeads EncoderWithProjection FeedForward GatedFeedForward Generation
    HeadAttention HeadsOutput KeyValue LatentAttention LayerNorm LogitsHead MaskedLMHead
    MixtureOfExperts Module MultiHeadAttention NextSentenceHead PatchEmbedding
    PositionalEncoding ProjectionOutput QuestionAnsweringHead RMSNorm
    RelativePositionBias ScaledDotProductAttention SequenceClassificationHead
    StackOutput TextEmbedding TokenClassificationHead TransformerDecoderLayer
    TransformerEncoderLayer VisionEncoder conv1d conv2d export_state functional
    functional_call generate linear load_model load_state norm save_model
"""
FUNCTIONAL = """
    activate activate_gated add_sinusoids alibi_bias apply_dropout apply_rotary
    block_mask causal_mask choose_token combine_masks embed first_highest gelu gelu_tanh
    layer_norm mask_from_keys mix_experts normalize padding_mask positions_from_ids
    prefix_mask quick_gelu relative_bias relu rms_norm route
    scaled_dot_product_attention segment_mask silu similarity tanh unembed window_mask
"""
NAMES = {
    "diptych": """
        CheckpointError OutputError convert_checkpoint convert_tensors diff_checkpoints
        inspect_checkpoint verify
    """,
    "diptych.spec": """
        AlibiConfig AttentionConfig AttentionPoolingConfig AudioEncoderConfig BlockConfig
        BucketTable COMPONENTS CheckpointError Config DecoderConfig DualEncoderConfig
        DynamicScaling EmbeddingConfig EncoderConfig EncoderDecoderConfig
        EncoderWithHeadsConfig EncoderWithProjectionConfig FeedForwardConfig
        GatedFeedForwardConfig HeadAttentionConfig LatentAttentionConfig LayerNormConfig
        Leaf Leaves LinearScaling Llama3Scaling LogitsHeadConfig LongRopeScaling
        MaskedLMHeadConfig MixtureOfExpertsConfig NextSentenceHeadConfig NormConfig
        OutputError PatchEmbeddingConfig PositionalEncodingConfig QKNormConfig
        QuestionAnsweringHeadConfig RMSNormConfig RelativeBiasConfig
        RelativePositionBiasConfig RotaryConfig RotaryTable RouterConfig
        ScaledDotProductAttentionConfig ScoreConfig SequenceClassificationHeadConfig
        SinusoidTable SlopeTable TextEmbeddingConfig TokenClassificationHeadConfig
        TransformerDecoderLayerConfig TransformerEncoderLayerConfig VisionEncoderConfig
        YarnScaling
    """,
    "diptych.convert": """
        Chain Checkpoint DecoderFamily Diff FAMILIES Family Inspection Join Keep LoadedModel
        Permute Report Rule Setting SettingsTable Split Stack Transpose Unstack
        convert_checkpoint convert_tensors diff_checkpoints inspect_checkpoint inverse
        layout_rules load_family open_checkpoint open_pair read_model rule verify_manifest
        write_model
    """,
    "torch_impl": PANEL,
    "torch_impl.functional": FUNCTIONAL,
    "jax_impl": PANEL,
    "jax_impl.functional": FUNCTIONAL,
}


@pytest.mark.parametrize("package", NAMES)
def test_public_names(package: str) -> None:
    module = import_module(package)
    names = NAMES[package].split()
    assert sorted(module.__all__) == names
    assert set(names) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in names)
