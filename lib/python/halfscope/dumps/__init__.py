"""Two implementations of one model, held against each other by the tensors that they wrote."""
