"""The ``diptych`` command: inspect, convert, verify, diff, families.

Exit codes: 0 done and identical, 1 a difference was found, 2 input or usage refused, 3 output not
written, 70 a fault of Diptych's own, 130 and 143 interrupted.
"""

import json
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import diptych

from .convert.layouts.layout import LAYOUTS, Layout
from .formats import WRITTEN
from .formats.errors import printable
from .spec import CheckpointError, OutputError
from .terminal import fail, prepare_streams, print_result, progress_bar, say

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Carry checkpoints between PyTorch and JAX, bit for bit, and prove it.",
)

# What convert writes, each value under a name of its own.
To = StrEnum("To", [(name, name) for name in LAYOUTS])  # type: ignore[misc]
Format = StrEnum("Format", [(kind, kind) for kind in WRITTEN])  # type: ignore[misc]
_UNUSUAL = [
    f"{layout.usual_format} for {name}"
    for name, layout in LAYOUTS.items()
    if layout.usual_format != Layout.usual_format
]

Source = Annotated[str, typer.Argument(metavar="SRC", help="A checkpoint: file or folder.")]
Family = Annotated[str | None, typer.Option(help="Take this family instead of detecting one.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A config.json for a bare state dict.")
]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="K=V", help="A setting the file lacks.")
]
Key = Annotated[
    str | None, typer.Option(metavar="PATH", help="The sub-dictionary of a training file to read.")
]
Ignored = Annotated[
    list[str] | None,
    typer.Option("--ignore-setting", metavar="K", help="Accept a setting that is not understood."),
]


def _add_family(path: Path | None) -> None:
    """Run a file of rules, and say so; the family in it is known from then on."""
    from .convert import FAMILIES, load_family

    if path is not None:
        print(f"running {printable(str(path), None)}", file=sys.stderr)
        family = load_family(path)
        if family.name in FAMILIES:
            raise CheckpointError(f"{path}: FAMILY: {family.name!r} is a family that Diptych has")
        FAMILIES[family.name] = family


Rules = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        callback=_add_family,
        help="Run this Python file, which makes a FAMILY that is to be known too.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    if version:
        say(f"diptych {diptych.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise typer.BadParameter("a command is needed: diptych --help lists them")


@app.command()
def inspect(
    src: Source,
    family: Family = None,
    config: ConfigFile = None,
    setting: Setting = None,
    key: Key = None,
    ignore_setting: Ignored = None,
    rules: Rules = None,
    as_json: Json = False,
) -> None:
    """Say what a checkpoint holds: names, shapes, dtypes, family, layout, settings."""
    reading = _reading(family, config, setting, key, ignore_setting)
    print_result(diptych.inspect_checkpoint(src, **reading), as_json)


@app.command()
def convert(
    src: Source,
    dst: Annotated[str, typer.Argument(metavar="DST", help="The folder to write.")],
    to: Annotated[To, typer.Option(help="The layout to write.")],
    family: Family = None,
    format: Annotated[
        Format | None,
        typer.Option(
            help=f"The container to write; else {', '.join(_UNUSUAL)}, or {Layout.usual_format}."
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Cast floating tensors: float32, float16, bfloat16 or float64."),
    ] = None,
    max_shard_size: Annotated[
        str | None, typer.Option(metavar="S", help="Split the weights, for example at 2GB.")
    ] = None,
    config: ConfigFile = None,
    setting: Setting = None,
    key: Key = None,
    ignore_setting: Ignored = None,
    rules: Rules = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan only; write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace DST.")] = False,
    verify_after: Annotated[
        bool,
        typer.Option(
            "--verify", help="Run `diptych verify SRC DST` afterwards, SRC read likewise."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Carry a checkpoint to another layout or container, bit for bit."""
    from .convert import open_checkpoint

    reading = _reading(family, config, setting, key, ignore_setting)
    with progress_bar() as progress:
        report = diptych.convert_checkpoint(
            src,
            dst,
            to=to.value,
            format=format and format.value,
            dtype=dtype,
            max_shard_size=max_shard_size,
            dry_run=dry_run,
            overwrite=overwrite,
            progress=progress,
            **reading,
        )
    if not verify_after or dry_run:
        return print_result(report, as_json)
    verification = diptych.verify(open_checkpoint(src, **reading), dst)
    if as_json:
        say(json.dumps({"convert": report.to_dict(), "verify": verification.to_dict()}, indent=2))
    else:
        say(f"{report}\n\n{verification}")
    raise typer.Exit(0 if verification.identical else 1)


@app.command()
def verify(
    a: Annotated[str, typer.Argument(metavar="A", help="A checkpoint.")],
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="Another.")] = None,
    weights_only: Annotated[
        bool, typer.Option("--weights-only", help="Leave the outputs out.")
    ] = False,
    rules: Rules = None,
    as_json: Json = False,
) -> None:
    """Check A against its manifest, or A and B: weights bit for bit, then their outputs."""
    verification = diptych.verify(a, b, weights_only=weights_only)
    print_result(verification, as_json)
    raise typer.Exit(0 if verification.identical else 1)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A checkpoint in any layout.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    rules: Rules = None,
    as_json: Json = False,
) -> None:
    """Compare two checkpoints of any layout, tensor by tensor."""
    difference = diptych.diff_checkpoints(a, b)
    print_result(difference, as_json)
    raise typer.Exit(0 if difference.identical else 1)


@app.command()
def families(rules: Rules = None, as_json: Json = False) -> None:
    """List the families of checkpoints that convert understands."""
    from .convert import FAMILIES

    found = {family.name: family.summary for family in FAMILIES.values()}
    if as_json:
        return say(json.dumps(found, indent=2))
    say("\n".join(f"{name:<16} {summary}" for name, summary in found.items()))


def main() -> NoReturn:
    """Run the command and exit by the contract at the top of this file."""
    prepare_streams()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code: int
    try:
        code = app(standalone_mode=False) or 0
        if code == 130:  # typer's word for an interrupt, in some of its versions
            fail("interrupted", code)
    except (KeyboardInterrupt, typer.Abort):
        code = fail("interrupted", 130)
    except SystemExit as exit_:  # of SIGTERM, or of typer's for a pipe that nobody reads
        code = fail("terminated", 143) if exit_.code == 143 else fail("output: Broken pipe", 3)
    except _USAGE_ERROR as error:
        code = fail(error.format_message(), 2)
    except CheckpointError as error:
        code = fail(str(error), 2, error.faults)
    except ValueError as error:
        code = fail(str(error), 2)
    except OutputError as error:
        code = fail(str(error), 3)
    except Exception as error:
        if "--debug" in sys.argv[1:]:
            raise
        code = fail(f"internal: {type(error).__name__}: {error}", 70)
    sys.exit(code)


_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # typer keeps the class, not its name, public


def _reading(
    family: str | None,
    config: Path | None,
    pairs: list[str] | None,
    key: str | None,
    ignored: list[str] | None,
) -> dict[str, Any]:
    """Return the options that say how a checkpoint is read, as ``open_checkpoint`` takes them."""
    return {
        "family": family,
        "config": config,
        "settings": _settings(pairs),
        "key": key,
        "ignore_settings": tuple(ignored or ()),
    }


def _settings(pairs: list[str] | None) -> dict[str, Any]:
    """Return ``K=V`` pairs as a dictionary; a value that is JSON is read as such."""
    from .families.settings import parse_setting

    settings: dict[str, Any] = {}
    for name, value in map(parse_setting, pairs or ()):
        if name in settings:
            raise typer.BadParameter(f"--set {name} is given twice")
        settings[name] = value
    return settings
