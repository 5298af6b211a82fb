"""Findings of a diagnosis beside its faults, in the order in which they are told."""

from __future__ import annotations

from halfscope.torch.diagnose.silent.angle_error import ANGLE_ERROR
from halfscope.torch.diagnose.silent.broken_buffers import BROKEN_BUFFERS
from halfscope.torch.diagnose.silent.broken_weights import BROKEN_WEIGHTS
from halfscope.torch.diagnose.silent.changed_constants import CHANGED_CONSTANTS
from halfscope.torch.diagnose.silent.equal_positions import EQUAL_POSITIONS
from halfscope.torch.diagnose.silent.flushed_gradients import FLUSHED_GRADIENTS
from halfscope.torch.diagnose.silent.lost_digits import LOST_DIGITS
from halfscope.torch.diagnose.silent.lost_updates import LOST_UPDATES
from halfscope.torch.diagnose.silent.overflowed_gradients import OVERFLOWED_GRADIENTS
from halfscope.torch.diagnose.silent.rounded_logits import ROUNDED_LOGITS
from halfscope.torch.diagnose.silent.stalled_totals import STALLED_TOTALS
from halfscope.torch.diagnose.silent.stored_averages import STORED_AVERAGES

# On a step in which every number is finite.
SILENT = (
    ANGLE_ERROR,
    EQUAL_POSITIONS,
    CHANGED_CONSTANTS,
    ROUNDED_LOGITS,
    STALLED_TOTALS,
    LOST_DIGITS,
    STORED_AVERAGES,
    FLUSHED_GRADIENTS,
    LOST_UPDATES,
)
# On what any step leaves behind.
STORED = (
    OVERFLOWED_GRADIENTS,
    BROKEN_BUFFERS,
    BROKEN_WEIGHTS,
)
