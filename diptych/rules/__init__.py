"""From names to names and back: templates, invertible transforms, and one engine."""
