"""Ablations: trainings over policies, scales and seeds, and the error of gradients by scale."""
