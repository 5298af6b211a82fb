"""Modules to which a search is narrowed, by patterns of their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from halfscope.torch.words import unknown_name


@dataclass(frozen=True)
class ChosenModules:
    """patterns: as they were given. ids: of the modules that have such a name; modules in them are chosen too."""

    patterns: tuple[str, ...]
    ids: frozenset[int]

    def __str__(self) -> str:
        return " and ".join(self.patterns)


def chosen_modules(model: torch.nn.Module, only: str | Iterable[str]) -> ChosenModules:
    """Raises TypeError for what is no pattern, ValueError for one that no module's name fits."""
    patterns = (only,) if isinstance(only, str) or not isinstance(only, Iterable) else tuple(only)
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(f"diagnose: only={only!r}; give a pattern of modules' names, or several, as 'layers.17'")
    named = dict(model.named_modules(remove_duplicate=False))
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise ValueError(f"diagnose: only={only!r}: {unknown_name(pattern, named)}")
    fits = (module for name, module in named.items() if any(fnmatchcase(name, pattern) for pattern in patterns))
    return ChosenModules(patterns, frozenset(map(id, fits)))
