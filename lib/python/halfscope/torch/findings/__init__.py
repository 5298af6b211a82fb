"""Findings: faults of a step, what made them, remedies, and their sentences."""
