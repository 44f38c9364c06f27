"""Proves ``diptych.parity``: the judge is judged."""
