"""The command ``diptych``, also as ``python -m diptych``."""

import sys


def main() -> None:
    """Import and run the command; an interrupt while it is imported ends as any other does."""
    try:
        from diptych.cli import main as run
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
