"""What the attentions are, before any framework."""
