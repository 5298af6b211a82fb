"""`python -m halfscope check script.py:make` or `model.onnx`: what to type so that it is right in a format."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

_RIGHT, _TO_CHANGE, _BAD_INPUT, _UNSEEN = range(4)  # exit statuses; the last: the step could not be looked at
_USAGE = "give SCRIPT.py:FUNCTION, whose function returns (model, loss) or (model, loss, optimizer)"


class BadInput(Exception):
    """One line: what, where, and what would be right."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; {_USAGE}")


def run(arguments: Sequence[str]) -> int:
    """The exit status, by what is to change. Output of the script goes to stderr."""
    try:
        options = _parser().parse_args(arguments)
        with contextlib.redirect_stdout(sys.stderr):
            report = _report(options)
    except BadInput as error:
        print(f"halfscope check: {error}", file=sys.stderr)
        return _BAD_INPUT
    _print(report.to_json() if options.json else str(report))
    if report.findings:
        return _TO_CHANGE
    return _RIGHT if getattr(report, "is_whole", True) else _UNSEEN


def _print(text: str) -> None:
    """A reader that wants no more, such as head, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="halfscope check", description=__doc__)
    parser.add_argument("script", metavar="SCRIPT.py[:FUNCTION]|MODEL.onnx", help="by default the function is make")
    parser.add_argument("--inputs", metavar="FILE.npz", help="of an ONNX model, by its input names; random by default")
    parser.add_argument("--output", metavar="MIXED.onnx", help="an ONNX model is written, with these nodes in FP32")
    parser.add_argument("--format", default="fp16", help="fp16, bf16, another format, autocast or autocast_bf16")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search for remedies (60)")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    return parser


def _report(options: argparse.Namespace) -> Any:
    if options.script.endswith(".onnx"):
        return _report_of_graph(options)
    if options.inputs is not None or options.output is not None:
        raise BadInput(f"--inputs and --output are for a model.onnx; {_USAGE}")
    try:
        from halfscope.torch import check
    except ImportError as error:
        raise BadInput(f"needs PyTorch and the compiled package: {error}") from error
    path, function = _split(options.script)
    model, loss, *optimizer = _made(path, function)
    try:
        return check(
            model, loss, optimizer[0] if optimizer else None, format=options.format, seconds=options.seconds
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path.name}:{function}: {str(error).removeprefix('check: ')}") from error


def _report_of_graph(options: argparse.Namespace) -> Any:
    try:
        from halfscope.onnx import check
    except ImportError as error:
        raise BadInput(str(error)) from error
    try:
        found = check(options.script, options.inputs, options.format)
        if options.output is not None:
            _save(found, options.output)
        return found.report
    except (TypeError, ValueError, OSError) as error:
        raise BadInput(str(error).removeprefix("onnx check: ")) from error


def _save(found: Any, path: str) -> None:
    worst = max((each.error for each in found.save(path)), default=0.0)
    print(f"{path}: written; computed, its outputs are at most {worst:.2g} off", file=sys.stderr)


def _split(given: str) -> tuple[Path, str]:
    path, _, function = given.rpartition(":") if given.rpartition(":")[2].isidentifier() else (given, "", "make")
    path = path or given
    if not Path(path).is_file():
        raise BadInput(f"{path}: no such file; {_USAGE}")
    return Path(path), function


def _made(path: Path, function: str) -> list[Any]:
    """model, loss and the optimizers, in the order of `check`."""
    make = getattr(_loaded(path), function, None)
    if not callable(make):
        raise BadInput(f"{path}: it has no function {function}; {_USAGE}")
    try:
        parts = make()
    except Exception as error:
        raise BadInput(_words(error, path)) from error
    if not isinstance(parts, (tuple, list)) or len(parts) not in (2, 3):
        raise BadInput(f"{path}: {function}() returns {_kind(parts)}; {_USAGE}")
    return list(parts)


def _kind(value: Any) -> str:
    if not isinstance(value, (tuple, list)):
        return f"a value of type {type(value).__name__}"
    return f"{len(value)} value{'s' * (len(value) != 1)}"


def _loaded(path: Path) -> Any:
    """The script as a module: what stands below `if __name__ == "__main__"` is not run."""
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: no Python file; {_USAGE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(_words(error, path)) from error
    return module


def _words(error: BaseException, path: Path) -> str:
    """ "train.py:12: RuntimeError: ...", with the last line of the script itself."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename) == path.resolve():
            line = frame.lineno
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    place = path.name if line is None else f"{path.name}:{line}"
    return f"{place}: {type(error).__name__}{f': {text}' if text else ''}"
