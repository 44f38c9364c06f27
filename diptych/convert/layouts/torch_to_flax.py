"""Names and shapes of torch_impl <-> those of jax_impl, by the kind that a name says.

Canonical names are torch_impl's. Both panels have the same paths; only kernels and embeddings are
called, and kernels stored, differently.
"""

from ...rules import Rule, Transpose, rule
from ...spec import Config

TORCH_TO_FLAX = (
    rule("{*path}_proj.weight", "{*path}_proj.kernel", Transpose()),
    rule("{*path}_proj.bias", "{*path}_proj.bias"),
    rule("{*path}_conv.weight", "{*path}_conv.kernel", Transpose((2, 3, 1, 0))),
    rule("{*path}_conv.bias", "{*path}_conv.bias"),
    rule("{*path}_conv1d.weight", "{*path}_conv1d.kernel", Transpose((2, 1, 0))),
    rule("{*path}_conv1d.bias", "{*path}_conv1d.bias"),
    rule("{*path}_embed.weight", "{*path}_embed.embedding"),
    rule("{*path}_norm.weight", "{*path}_norm.weight"),
    rule("{*path}_norm.bias", "{*path}_norm.bias"),
    rule("{*path}_param", "{*path}_param"),
)


def layout_rules(config: Config) -> tuple[Rule, ...]:
    """Return the rules from torch_impl to jax_impl for a component.

    A component that is itself an embedding or a norm has leaves without a path, whose kind only
    the config tells.
    """
    flax_names = {"embed": {"weight": "embedding"}}
    root = [
        rule(name, flax_names.get(leaf.kind, {}).get(name, name))
        for name, leaf in config.leaves().items()
        if "." not in name and leaf.kind != "param"
    ]
    return (*TORCH_TO_FLAX, *root)
