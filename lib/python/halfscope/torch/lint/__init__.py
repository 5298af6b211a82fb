"""Lint of a model and its optimizer: numbers that a format does not hold, found without training."""

from halfscope.torch.lint.lint import Lint, lint

__all__ = ["Lint", "lint"]
