"""Arithmetic of emulated operations: operands, sums in an order, roundings of results."""
