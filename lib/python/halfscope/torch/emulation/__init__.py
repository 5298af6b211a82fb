"""Training of a PyTorch model in emulated formats."""
