#!/usr/bin/env python3
"""Fails where a public function of two or more arrays, or of an array and a shape, is not tried with unequal sizes.

    check_spans.py ROOT

The functions are those of the installed headers whose parameters hold two spans, readers or shapes or more, those of a
parameter's own members included. Each stands in the table of tests/core/unequal_sizes_test.cpp as "HEADER FUNCTION", or below with a reason.
"""

import re
import sys
from pathlib import Path

TABLE = "tests/core/unequal_sizes_test.cpp"
EXEMPT = {
    "passes/file_summary.hpp summarise_files": "a list of files, each with a list of tensors",
    "stats/format_comparison.hpp compare_formats": "a list of formats and one of tensors, of any lengths",
}
SPAN = r"std::span<|\bConstArrayView\b|\bArrayView\b|\bElementReader\b|\bMatrixShape\b"
KEYWORDS = set("if for while switch return requires decltype noexcept static_cast sizeof void".split())


def end_of(text: str, start: int, opening: str, closing: str) -> int:
    """Where the bracket closes that opened before `start`."""
    depth = 1
    while depth and start < len(text):
        depth += {opening: 1, closing: -1}.get(text[start], 0)
        start += 1
    return start - 1


def spans_of_types(texts: list[str]) -> dict[str, int]:
    """How many spans the structs of the headers have as members."""
    found = {}
    for text in texts:
        for match in re.finditer(r"\b(?:struct|class)\s+(\w+)[^;{()]*\{", text):
            body = text[match.end() : end_of(text, match.end(), "{", "}")]
            members = re.findall(rf"(?m)^\s+(?:const )?(?:{SPAN})[^;()]*;", body)
            if members:
                found[match.group(1)] = len(members)
    return found


def functions(text: str, spans: dict[str, int]) -> set[str]:
    """Names of the functions in a header that take two spans or more."""
    found = set()
    for match in re.finditer(r"\b(\w+)\s*\(", text):
        parameters = text[match.end() : end_of(text, match.end(), "(", ")")]
        if match.group(1) in KEYWORDS or ";" in parameters:
            continue
        own = sum(spans.get(word, 0) for word in re.findall(r"\w+", parameters))
        if len(re.findall(SPAN, parameters)) + own >= 2:
            found.add(match.group(1))
    return found


def missing(root: Path) -> list[str]:
    library = root / "lib" / "halfscope"
    headers = [path for path in sorted(library.rglob("*.hpp")) if "detail" not in path.parts]
    texts = {path: re.sub(r"//[^\n]*", "", path.read_text()) for path in headers}
    spans = spans_of_types(list(texts.values()))
    table = (root / TABLE).read_text()
    wanted = {f"{path.relative_to(library)} {name}" for path in headers for name in functions(texts[path], spans)}
    tried = set(re.findall(r'"(\S+\.hpp \w+)"', table))
    lines = [f"{name}: add it to {TABLE}" for name in sorted(wanted - tried - EXEMPT.keys())]
    lines += [f"{name}: no public function of two arrays or of a shape; delete it from {TABLE}" for name in sorted(tried - wanted)]
    lines += [f"{name}: no longer needs its exemption" for name in sorted(EXEMPT.keys() - (wanted - tried))]
    return lines


def main() -> int:
    lines = missing(Path(sys.argv[1]))
    print("\n".join(lines) or "every public function of two arrays is tried with unequal sizes")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
