"""The PyTorch panel: attention and transformer components as ``torch.nn`` modules."""
