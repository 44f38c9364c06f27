"""The mixtures of experts of real models: how many are chosen, and the fields that say how."""

from typing import Any

from diptych.spec import RouterConfig

MIXTURES: dict[str, tuple[int, dict[str, Any]]] = {
    "softmax, then top 2": (2, {}),
    "normalized (Mixtral)": (2, {"router": RouterConfig(normalize=True)}),
    "one expert": (1, {"activation": "gelu"}),
    "all experts": (6, {"router": RouterConfig(normalize=True)}),
    "softmax of the top (gpt-oss)": (
        3,
        {
            "activation": "clamped_swiglu",
            "bias": True,
            "router": RouterConfig(scoring="softmax_of_top", bias=True),
        },
    ),
    "gated shared expert (Qwen2-MoE)": (2, {"shared_d_ff": 7, "shared_gate": True}),
    "sigmoid, groups, shared expert (DeepSeek-V3)": (
        3,
        {
            "router": RouterConfig(
                scoring="sigmoid",
                normalize=True,
                scale=2.5,
                choice_bias=True,
                num_groups=3,
                top_groups=2,
            ),
            "shared_d_ff": 7,
        },
    ),
}
