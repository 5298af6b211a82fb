"""Half precision in the training of a PyTorch model: watched, emulated, diagnosed, and with any loss scaler."""

from halfscope.torch.ablate.ablation import Ablation, TrainingRun, ablate
from halfscope.torch.ablate.scale_probe import ScaleProbe, TensorError, probe_scales
from halfscope.torch.check.check import check
from halfscope.torch.diagnose.diagnose import diagnose
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.emulate.emulation import Emulation, emulate
from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.lint import Lint, lint
from halfscope.torch.watch.watch import Watch, watch

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
    "check",
    "diagnose",
    "emulate",
    "lint",
    "probe_scales",
    "watch",
]
