"""Diagnosis of a training step: the operation that goes wrong, its line, and a remedy."""
