"""Counts of tensors: of one step, of all steps, of all ranks, and their words."""
