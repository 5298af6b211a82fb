"""Products whose sums are split over K: the parts are stored in a format, and then added up in FP32."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from halfscope import _core

_NAME = re.compile(r"split_k\((\d+), ?([^()]+)\)(?:/(.+))?")


@dataclass(frozen=True)
class SplitSum:
    """parts: of K, of equal length but for the last; format: of the stored parts; inner: the order within a part."""

    parts: int
    format: str
    inner: str | None

    def __str__(self) -> str:
        return f"split_k({self.parts}, {self.format})" + (f"/{self.inner}" if self.inner else "")

    def ranges(self, terms: int) -> list[tuple[int, int]]:
        """The first term of each part, and the first behind it."""
        length = max(1, -(-terms // self.parts))
        return [(first, min(first + length, terms)) for first in range(0, terms, length)]


@cache
def split_of(model: str) -> SplitSum | None:
    """The parsed name "split_k(PARTS, FORMAT)[/ORDER]"; None of another model.

    Raises ValueError for no part, and for an unknown format or model.
    """
    found = _NAME.fullmatch(model)
    if found is None:
        return None
    parts, format, inner = int(found[1]), str(_core.describe_quantizer(found[2])["quantizer"]), found[3]
    if parts < 1:
        raise ValueError(f"'{model}': give 1 or more parts")
    return SplitSum(parts, format, None if inner is None else str(_core.product_model(inner)))


def unsplit(model: str) -> str:
    """The order within a part, for convolutions, whose sums are not split."""
    split = split_of(model)
    return model if split is None or split.inner is None else split.inner
