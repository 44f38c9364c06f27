"""Which part of a Flax tree is the model: the collection "params", without a trainer's state."""

from dataclasses import replace

from ..container import Branch, Container
from ..tensor import Tensor

PARAMETERS = "params"
"""The collection that Linen keeps a model's parameters in."""

TRAINING = ("dropout_rng", "dynamic_scale", "epoch", "opt_state", "rng", "rngs", "step")
"""What a training state holds beside the model, at the top."""


def pick_parameters(container: Container) -> Container:
    """Return the same container, its tensors those of the one collection of parameters in the tree.

    Other collections, such as "batch_stats", stay under their whole names, since a model may need
    them. What only training needs is left out, in a dictionary of its own in ``tree``. Several
    collections of parameters leave no tensors, so that one must be selected.

    Args:
        container: Tensors by their whole paths.
    """
    branches: dict[str, dict[str, Tensor]] = {"": {}}
    for name, tensor in container.tensors.items():
        path = _collection(name)
        short = name[len(path) + 1 :] if path else name
        if path and short:
            tensor = replace(tensor, name=short)
        branches.setdefault(path, {})[tensor.name] = tensor
    others = container.tree[""].others if container.tree else {}
    tree = {
        path: Branch(tensors, others if path == "" else {}) for path, tensors in branches.items()
    }
    models = [path for path in tree if path.rpartition(".")[2] == PARAMETERS]
    if len(models) > 1:
        return replace(container, tensors={}, tree=tree)
    tensors = tree[models[0] if models else ""].tensors
    if models and tree[""].tensors:
        tensors = {**tensors, **tree[""].tensors}
    is_plain = len(tree) == 1 and not others
    return replace(container, tensors=tensors, tree={} if is_plain else tree)


def _collection(name: str) -> str:
    """Return the path of the collection of parameters, or of training's part, that a name is in."""
    parts = name.split(".")
    if parts[0] in TRAINING:
        return parts[0]
    folders = parts[:-1]
    if PARAMETERS not in folders:
        return ""
    end = folders.index(PARAMETERS) + 1
    # A state's field "params" may hold all variables, whose own "params" is then the model.
    while folders[end : end + 1] == [PARAMETERS]:
        end += 1
    return ".".join(parts[:end])
