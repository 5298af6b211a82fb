"""Findings of a step whose numbers are all finite."""
