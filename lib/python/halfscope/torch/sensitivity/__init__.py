"""Cost of a format in each layer: predicted by one backward pass for a batch, and tried."""
