"""A step computed twice, in emulated formats and in FP32, and what the formats have changed in each tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.emulation.marks import Marks, storage_key, storage_of
from halfscope.torch.emulation.operations import Kind, Operation
from halfscope.torch.emulation.places import Places, Region

_HALF = (torch.float16, torch.bfloat16)
_RANDOM = """
    bernoulli native_dropout normal uniform random exponential rand rand_like randn randn_like
"""
_SAME = (Kind.VIEW, Kind.UNTOUCHED, Kind.SOURCE)


@dataclass
class Difference:
    """Of a tensor in emulated formats to that of FP32, all of a step's uses together."""

    step: int
    role: str
    tensor: str
    _squares: list[float] = field(
        default_factory=lambda: [0.0, 0.0, 0.0, 0.0]
    )  # of the difference, FP32, emulated; product

    def add(self, emulated: torch.Tensor, exact: torch.Tensor) -> None:
        a, b = emulated.detach().double().flatten(), exact.detach().double().flatten()
        parts = (((a - b) ** 2).sum(), (b**2).sum(), (a**2).sum(), (a * b).sum())
        self._squares = [known + float(part) for known, part in zip(self._squares, parts)]

    @property
    def relative_error(self) -> float:
        """Norm of the difference over the norm of FP32's; infinite where a number is not finite."""
        difference, exact = self._squares[0], self._squares[1]
        if not math.isfinite(difference):
            return math.inf
        if exact == 0:
            return 0.0 if difference == 0 else math.inf
        return math.sqrt(difference / exact)

    @property
    def cosine(self) -> float:
        """Of the angle between the two; NaN where one of them is zero or not finite."""
        _, exact, emulated, product = self._squares
        norms = math.sqrt(exact) * math.sqrt(emulated) if exact >= 0 and emulated >= 0 else math.nan
        return product / norms if norms and math.isfinite(norms) else math.nan


class Comparison:
    """Differences by step, role and tensor, the largest error first."""

    def __init__(self, found: dict[tuple[int, str, str], Difference] | None = None) -> None:
        self._found = {} if found is None else found

    def difference(self, step: int, role: str, tensor: str) -> Difference:
        """That of a tensor, which begins with nothing."""
        return self._found.setdefault((step, role, tensor), Difference(step, role, tensor))

    @property
    def steps(self) -> list[int]:
        return sorted({step for step, _, _ in self._found})

    def of_steps(self, steps: Iterable[int] | None) -> Comparison:
        """Of these steps alone; all for None. Raises ValueError for one that was not compared."""
        wanted = self.steps if steps is None else list(steps)
        missing = sorted(set(wanted) - set(self.steps))
        if missing:
            raise ValueError(
                f"compare_to: step {missing[0]} was not compared, only {self.steps}; "
                f"give emulate(..., compare_steps={wanted})"
            )
        return Comparison({key: found for key, found in self._found.items() if key[0] in wanted})

    def ranked(self) -> list[Difference]:
        """The largest error first; of equal ones the first that was computed."""
        return sorted(self._found.values(), key=lambda found: -found.relative_error)

    def __len__(self) -> int:
        return len(self._found)

    def __str__(self) -> str:
        rows = [f"{'step':>5}  {'role':<20} {'tensor':<32} {'error':>9} {'cosine':>8}"]
        rows += [
            f"{found.step:>5}  {found.role:<20} {found.tensor:<32} {found.relative_error:>9.2g} {found.cosine:>8.4f}"
            for found in self.ranked()[:20]
        ]
        return "\n".join(rows)


class Shadows:
    """The FP32 counterpart of every tensor of a step, in a copy of its storage."""

    def __init__(self, comparison: Comparison, step: int, places: Places, marks: Marks) -> None:
        self._comparison, self._step, self._places, self._marks = comparison, step, places, marks
        self._shadows: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._seen: set[tuple[str, str, int]] = set()

    def around(self, run: Callable, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation in emulated formats, after the same in FP32."""
        place = self._places.now()
        if line.kind in _SAME or (place is not None and place.region is Region.UPDATE):
            return run(func, line, args, kwargs)
        if line.name in _RANDOM.split() or (place is None and not self._any_shadow((args, kwargs))):
            return run(func, line, args, kwargs)
        in_place = str(func.overloadpacket.__name__).endswith("_") or "out" in kwargs
        if in_place:
            self._shadow_target(kwargs.get("out", args[0]))
        exact = func(*self._shadowed(args), **self._shadowed(kwargs))
        result = run(func, line, args, kwargs)
        if not in_place:
            self._keep(result, exact)
        if place is not None and line.kind is not Kind.EXACT:
            self._compare_operation(line, place.region, place.tensor(line.name), (args, result))
        return result

    def _compare_operation(self, line: Operation, region: Region, name: str, given: tuple[Any, Any]) -> None:
        args, result = given
        if region is Region.FORWARD:
            first = result[0] if isinstance(result, (tuple, list)) else result
            if isinstance(first, torch.Tensor):
                self.compare("activation", name, first)
        elif region is Region.BACKWARD:
            for value in args:
                mark = self._marks.get(value) if isinstance(value, torch.Tensor) else None
                if mark is not None and mark.is_gradient:
                    self.compare("activation_gradient", name, value)
                    return

    def compare(self, role: str, name: str, tensor: torch.Tensor, original: torch.Tensor | None = None) -> None:
        """Notes how far `tensor` is from the counterpart of it, or of the `original` that it was rounded from.

        A gradient that several operations use is noted once.
        """
        original = tensor if original is None else original
        key = (role, name, storage_key(original))
        found = self._shadows.get(storage_key(original))
        if found is None or key in self._seen or not tensor.is_floating_point():
            return
        self._seen.add(key)
        self._comparison.difference(self._step, role, name).add(tensor, self._view(found[1], original))

    def _any_shadow(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return storage_key(value) in self._shadows
        if isinstance(value, dict):
            return any(map(self._any_shadow, value.values()))
        return isinstance(value, (tuple, list)) and any(map(self._any_shadow, value))

    def _shadowed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            found = self._shadows.get(storage_key(value)) if value.is_floating_point() else None
            if found is not None:
                return self._view(found[1], value)
            return value.float() if value.dtype in _HALF else value
        if isinstance(value, dict):
            return {key: self._shadowed(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._shadowed, value))
        return torch.float32 if value in _HALF else value

    @staticmethod
    def _view(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return flat.as_strided(like.size(), like.stride(), like.storage_offset())

    def _shadow_target(self, target: Any) -> None:
        """What is written in place gets a counterpart of its own first."""
        if isinstance(target, torch.Tensor) and target.is_floating_point() and storage_key(target) not in self._shadows:
            self._register(target, target.float() if target.dtype in _HALF else target.clone())

    def _keep(self, result: Any, exact: Any) -> None:
        if isinstance(result, torch.Tensor) and isinstance(exact, torch.Tensor):
            if result.is_floating_point() and result.shape == exact.shape:
                self._register(result, exact)
        elif isinstance(result, (tuple, list)) and isinstance(exact, (tuple, list)):
            for part, exact_part in zip(result, exact):
                self._keep(part, exact_part)

    def _register(self, tensor: torch.Tensor, exact: torch.Tensor) -> None:
        storage = storage_of(tensor)
        flat = torch.zeros(storage.nbytes() // tensor.element_size(), dtype=exact.dtype, device=tensor.device)
        self._view(flat, tensor).copy_(exact)
        self._shadows[storage_key(tensor)] = (StorageWeakRef(storage), flat)
