"""Proves ``diptych.families``, each family beside ``transformers`` itself."""
