"""Counts of tensors where they lie: in host memory, or on a GPU."""
