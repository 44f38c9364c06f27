"""``python -m diptych`` is the command ``diptych``."""

from diptych.cli import main

main()
