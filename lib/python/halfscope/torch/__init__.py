"""Half precision in the training of a PyTorch model: watched, emulated, diagnosed, and with any loss scaler."""

from halfscope.torch.ablate.ablation import Ablation, TrainingRun, ablate
from halfscope.torch.ablate.scale_probe import ScaleProbe, TensorError, probe_scales
from halfscope.torch.check.check import check
from halfscope.torch.diagnose.diagnose import diagnose
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.dump import dump
from halfscope.torch.emulate.emulation import Emulation, emulate
from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.gradient_errors.error_sums import GradientError
from halfscope.torch.gradient_errors.gradient_errors import gradient_errors
from halfscope.torch.gradient_errors.ranked_errors import GradientErrors
from halfscope.torch.lint import Lint, lint
from halfscope.torch.one_block.capture import Capture, capture
from halfscope.torch.one_block.check_blocks import check_blocks
from halfscope.torch.one_block.loaded_block import LoadedBlock, load_block
from halfscope.torch.rescale.rescale import rescale
from halfscope.torch.rescale.rescaled import Rescaled
from halfscope.torch.sensitivity.format_mixture import FormatMixture
from halfscope.torch.sensitivity.outlier_channels import ChannelCost, OutlierChannels
from halfscope.torch.sensitivity.ranked_units import Sensitivity
from halfscope.torch.sensitivity.sensitivity import sensitivity
from halfscope.torch.sensitivity.unit_scores import Score
from halfscope.torch.watch.watch import Watch, watch

__all__ = [
    "Ablation",
    "Capture",
    "ChannelCost",
    "Diagnosis",
    "Emulation",
    "FormatMixture",
    "GradScaler",
    "GradientError",
    "GradientErrors",
    "Lint",
    "LoadedBlock",
    "OutlierChannels",
    "Rescaled",
    "ScaleProbe",
    "Score",
    "Sensitivity",
    "TensorError",
    "TrainingRun",
    "Watch",
    "ablate",
    "capture",
    "check",
    "check_blocks",
    "diagnose",
    "dump",
    "emulate",
    "gradient_errors",
    "lint",
    "load_block",
    "probe_scales",
    "rescale",
    "sensitivity",
    "watch",
]
