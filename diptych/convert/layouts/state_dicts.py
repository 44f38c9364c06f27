"""Which of the dictionaries in a training file, or in what Orbax saved, is the model."""

from collections.abc import Callable, Collection

from ...formats.container import Container
from ...formats.errors import fault

MAX_LISTED = 20  # names in one note


def choose_state_dict(
    container: Container, fits: Callable[[Collection[str]], bool], what: str
) -> tuple[Container, list[str]]:
    """Return the container with the tensors of one dictionary, and a note of what lies outside.

    Args:
        container: The container, perhaps with no dictionary selected yet.
        fits: Whether a dictionary with these names is what is looked for.
        what: That, for the message that no dictionary fits.

    Raises:
        CheckpointError: If not exactly one dictionary fits; of one inside another, the outer wins.
    """
    holders = [path for path, branch in container.tree.items() if branch.tensors]
    if not container.tensors and holders:
        fitting = [path for path in holders if fits(container.tree[path].tensors)]
        fitting = [path for path in fitting if not any(_is_inside(path, p) for p in fitting)]
        if len(fitting) != 1:
            several = ", ".join(map(repr, fitting or holders))
            cause = "several dictionaries fit" if fitting else f"{what} fits any dictionary"
            raise fault(container.files[0], f"{cause}: {several}: give --key")
        container = container.select(fitting[0])
    outside = _outside(container)
    return container, [f"not read: {_listed(outside)}"] if outside else []


def _outside(container: Container) -> list[str]:
    """Return what is not read: other dictionaries with tensors, and what lies beside the chosen.

    One dictionary may be in the tree under several paths, so that those whose tensors are all the
    chosen one's, by place in the file, are not called unread.
    """
    chosen = [path for path, b in container.tree.items() if b.tensors is container.tensors]
    places = {(id(tensor.source), tensor.position) for tensor in container.tensors.values()}

    def is_chosen(path: str) -> bool:
        """Whether a dictionary is the chosen one, or the same one with a longer or shorter path."""
        if not any(_lies_in(path, key) or _lies_in(key, path) for key in chosen):
            return False
        tensors = container.tree[path].tensors.values()
        return all((id(tensor.source), tensor.position) in places for tensor in tensors)

    outside = [
        f"{path!r} ({len(branch.tensors)} tensors)"
        for path, branch in container.tree.items()
        if branch.tensors and not is_chosen(path)
    ]
    # Beside the chosen one: what the dictionaries around it hold, and those without any tensor.
    for path, branch in container.tree.items():
        inner = [key.removeprefix(f"{path}.") for key in chosen if _lies_in(key, path)]
        beside = {**branch.others, **branch.refused} if inner else {}
        if not inner and not branch.tensors:
            beside = {f"{path}.{name}": what for name, what in branch.others.items()}
        outside += [
            f"{name!r} ({what.removeprefix('is ')})"
            for name, what in beside.items()
            if not any(_lies_in(key, name) for key in inner)
        ]
    return outside


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}.")


def _is_inside(path: str, folder: str) -> bool:
    return path != folder and _lies_in(path, folder)


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
