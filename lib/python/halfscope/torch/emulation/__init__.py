"""Training of a PyTorch model in emulated formats."""

from halfscope.torch.emulation.ablation import Ablation, TrainingRun, ablate
from halfscope.torch.emulation.emulation import Emulation, emulate

__all__ = ["Ablation", "Emulation", "TrainingRun", "ablate", "emulate"]
