"""Tensors and their storages: who has memory, and tensors inside of arguments."""
