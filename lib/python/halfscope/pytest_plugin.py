"""Plugin of pytest: the fixture halfscope_floor, whose comparisons a failing report lists with their roundings.

pytest finds it by the entry point of the installed package. NumPy and the compiled module are loaded with the first
comparison, so that other tests start as before.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from halfscope.text_tables import aligned

if TYPE_CHECKING:
    from halfscope.testing import Agreement

_COLUMNS = ["comparison", "elements", "takes", "counted", "of the bound", "verdict"]


class Comparisons:
    """Comparisons of one test, in order; a call of it is `halfscope.testing.assert_close`, with a name to report."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []

    def __call__(
        self,
        actual: Any,
        expected: Any,
        *,
        roundings: int,
        format: str = "fp16",
        magnitudes: Any = None,
        shared: int = 0,
        name: str = "",
    ) -> Agreement:
        """Raises AssertionError and ValueError as `assert_close` does; name: of this comparison in the report."""
        __tracebackhide__ = True
        from halfscope.testing import compared, judge

        found = compared(actual, expected, roundings, format, magnitudes, shared)
        self._rows.append(self._row(name, found))
        judge(found)
        return found

    def _row(self, name: str, found: Agreement) -> list[str]:
        name = name or str(len(self._rows) + 1)
        if found.floor is None:
            return [name, "0", "-", "-", "-", found.verdict]
        needed, counted = found.floor.needed, found.floor.roundings.count
        return [name, str(found.elements), "none" if needed is None else str(needed), str(counted),
                f"{found.worst:.3g}", found.verdict]  # fmt: skip

    @property
    def table(self) -> str:
        """A line per comparison: the roundings that the difference of its worst element takes, beside those counted."""
        return aligned([_COLUMNS, *self._rows]) if self._rows else ""


_FLOORS: WeakKeyDictionary[Any, Comparisons] = WeakKeyDictionary()  # by test; pytest before 7 has no stash of items


@pytest.fixture
def halfscope_floor(request: pytest.FixtureRequest) -> Comparisons:
    """`halfscope.testing.assert_close`; a failing report lists all comparisons of the test."""
    return _FLOORS.setdefault(request.node, Comparisons())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Adds the table to the report of a test that fails."""
    outcome = yield
    report, comparisons = outcome.get_result(), _FLOORS.get(item)
    if report.failed and comparisons is not None and comparisons.table:
        report.sections.append(("halfscope floor", comparisons.table))
