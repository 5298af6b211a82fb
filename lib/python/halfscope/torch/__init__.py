"""Half precision in the training of a PyTorch model: `watch`, `probe_scales`, and `GradScaler` with any rule."""

from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.scale_probe import ScaleProbe, TensorError, probe_scales
from halfscope.torch.watch import Watch, watch

__all__ = ["GradScaler", "ScaleProbe", "TensorError", "Watch", "probe_scales", "watch"]
