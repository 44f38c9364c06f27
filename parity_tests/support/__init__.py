"""What the tests share: both panels behind one face, plain code, tiny models."""
