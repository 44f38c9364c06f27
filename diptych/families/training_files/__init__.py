"""Files of people's own training, and of torch's own layers."""
