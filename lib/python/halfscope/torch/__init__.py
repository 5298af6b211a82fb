"""Half precision in the training of a PyTorch model: watched, emulated, diagnosed, and with any loss scaler."""

from halfscope.torch.diagnosis import Diagnosis, diagnose
from halfscope.torch.emulation import Ablation, Emulation, TrainingRun, ablate, emulate
from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.lint import Lint, lint
from halfscope.torch.scale_probe import ScaleProbe, TensorError, probe_scales
from halfscope.torch.watch import Watch, watch

__all__ = [
    "Ablation",
    "Diagnosis",
    "Emulation",
    "GradScaler",
    "Lint",
    "ScaleProbe",
    "TensorError",
    "TrainingRun",
    "Watch",
    "ablate",
    "diagnose",
    "emulate",
    "lint",
    "probe_scales",
    "watch",
]
