"""Transformations of a step that may heal it, a family each; `table.FAMILIES` has them in order of price."""
