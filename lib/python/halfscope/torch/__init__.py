"""Effects of half precision on a PyTorch model while it trains, `watch`; and loss scaling by any rule, `GradScaler`."""

from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.watch import Watch, watch

__all__ = ["GradScaler", "Watch", "watch"]
