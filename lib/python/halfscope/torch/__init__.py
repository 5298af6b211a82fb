"""Effects of half precision on a PyTorch model while it trains: `halfscope.torch.watch`."""

from halfscope.torch.watch import Watch, watch

__all__ = ["Watch", "watch"]
