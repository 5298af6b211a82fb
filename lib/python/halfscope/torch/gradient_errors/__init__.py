"""Errors of a training's gradients by product of each layer, beside what batches differ by."""
