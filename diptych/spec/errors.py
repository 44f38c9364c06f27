"""The error that a user meets when a file, not an argument, is at fault."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read or converted as asked.

    The message names the file, then the key if there is one, then the cause; it is one line.

    Args:
        message: The first fault, one line.
        faults: All faults when several were collected; the first stands in ``message``.
    """

    def __init__(self, message: str, faults: tuple[str, ...] = ()):
        super().__init__(message)
        self.faults = faults or (message,)


class OutputError(OSError):
    """The destination could not be written: disk, permission or lock. Nothing was left behind."""
