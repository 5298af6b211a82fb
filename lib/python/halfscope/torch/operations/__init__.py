"""PyTorch's operations below autograd: one table, and the rules that name them."""
