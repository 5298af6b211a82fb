"""Families of transformations, the cheapest first; a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.clamps import clamps
from halfscope.torch.doctor.transformations.constants import constants
from halfscope.torch.doctor.transformations.fp32_calls import one_call, region
from halfscope.torch.doctor.transformations.identities import identities
from halfscope.torch.doctor.transformations.moved_powers import moved_powers
from halfscope.torch.doctor.transformations.powers_of_two import powers_of_two

Family = Callable[[Group], Iterator[Candidate]]
FAMILIES: tuple[Family, ...] = (
    constants,
    clamps,
    identities,
    powers_of_two,
    moved_powers,
    one_call,
    region,
)
SURE: Family = region  # needs no knowledge of the fault
