"""What a call may be given, on tuples and numbers: the same words in both panels."""
