"""Diagnosis of a training step: the operation that goes wrong, its line, and a remedy."""

from halfscope.torch.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
