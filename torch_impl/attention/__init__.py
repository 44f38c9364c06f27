"""The attentions: of bare scores, of one head, of several, through a latent, to one query."""
