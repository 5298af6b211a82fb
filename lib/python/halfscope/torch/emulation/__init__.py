"""Training of a PyTorch model in emulated formats."""

from halfscope.torch.emulation.emulation import Emulation, emulate

__all__ = ["Emulation", "emulate"]
