"""The base of every module."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self, TypeVar

from torch import nn

from diptych.spec import Config

_ConfigKind = TypeVar("_ConfigKind", bound=Config)


def config_of(kind: type[_ConfigKind], arguments: Mapping[str, Any]) -> _ConfigKind:
    """Return the config whose fields are a constructor's arguments, of the same names.

    Args:
        kind: The config's class.
        arguments: ``locals()`` of the constructor, at its beginning.

    Returns:
        The config.
    """
    return kind(**{field.name: arguments[field.name] for field in fields(kind)})


class Module(nn.Module):
    """A module that is built from a config and is either in training or in evaluation mode.

    A new module is in training mode.
    """

    config: Any  # the frozen config of the component
    training: bool

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Build the module whose constructor arguments are the config's fields.

        Args:
            config: The config of this component.

        Returns:
            The module, in training mode.

        Raises:
            TypeError: If the config is another component's.
        """
        if config.component not in [base.__name__ for base in cls.__mro__]:
            raise TypeError(f"config={type(config).__name__} is not a config of {cls.__name__}")
        arguments = {field.name: getattr(config, field.name) for field in fields(config)}
        return cls(**arguments)

    def train(self, mode: bool = True) -> Self:
        """Put the module and all in it into training mode, or with False into evaluation mode.

        Args:
            mode: Whether to train.

        Returns:
            The module itself.
        """
        return super().train(mode)

    def eval(self) -> Self:
        """Put the module and all in it into evaluation mode, in which nothing is drawn.

        Returns:
            The module itself.
        """
        return self.train(False)
