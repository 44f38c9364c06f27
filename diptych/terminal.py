"""How the command prints: names as they are, one error line, a bar where someone watches."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .formats.errors import printable
from .spec import OutputError


def prepare_streams() -> None:
    """Let every name be printed in every encoding, and nothing fail where no stream is open."""
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_result(result: Any, as_json: bool) -> None:
    """Print a result as a table or as JSON."""
    say(json.dumps(result.to_dict(), indent=2) if as_json else str(result))


def say(text: str) -> None:
    """Print lines, or raise OutputError where nothing takes them."""
    try:
        print("\n".join(printable(line, None) for line in text.split("\n")), flush=True)
    except OSError as error:
        # What is left in the buffer would be written, and fail, once more at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"output: {error.strerror}") from None


def fail(message: str, code: int, faults: tuple[str, ...] = ()) -> int:
    """Print the one error line, with ``--json`` also all faults, and return the exit code."""
    if "--json" in sys.argv[1:]:
        with suppress(OutputError):
            say(json.dumps({"error": message, "faults": list(faults)}, indent=2))
    more = f" (and {len(faults) - 1} more: --json lists all)" if len(faults) > 1 else ""
    print(f"error: {printable(' '.join(message.split()), None)}{more}", file=sys.stderr)
    return code


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback (bytes done, bytes in all) that draws a bar; none where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("convert", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
