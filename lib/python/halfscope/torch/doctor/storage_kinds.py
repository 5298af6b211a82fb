"""Kind of the numbers in each storage of a run: of the format, of FP32, or in FP32 for a trial."""

from __future__ import annotations

from enum import Enum


class Numbers(Enum):
    """Numbers that a storage holds; all storages are float32."""

    NARROW = "numbers of the format"
    WIDE = "FP32, as the script has it"
    LIFTED = "FP32 for a trial; a call outside of the trial's region casts it down"
    STATE = "FP32 for a trial of weights and state; every call casts it down, an update keeps it"
