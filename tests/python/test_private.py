"""Private names of PyTorch stand in halfscope/torch/private.py alone, and this PyTorch has each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from recording.source_tree import ROOT

PACKAGE = ROOT / "lib" / "python" / "halfscope" / "torch"
PRIVATE = PACKAGE / "private.py"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names(trees: list[ast.Module]) -> set[str]:
    """Private names that the package itself gives: functions, classes, attributes and variables."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return {name for name in found if is_private(name)}


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private attributes of everything but `self` and `cls`, asked by name too, and private modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            name = node.args[1]
            is_asked = node.func.id in ("getattr", "hasattr", "setattr") and isinstance(name, ast.Constant)
            if is_asked and is_private(str(name.value)):
                yield str(name.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            yield from filter(is_private, [*str(node.module).split("."), *(alias.name for alias in node.names)])


def foreign(tree: ast.Module, own: set[str]) -> set[str]:
    """Private names of others; `_asdict`, `_fields`, `_replace` are a NamedTuple's, `_core` is our compiled module."""
    return set(private_names(tree)) - own - {"_asdict", "_fields", "_replace", "_core"}


def test_no_other_module_has_a_private_name() -> None:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PRIVATE]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    listed = set(private_names(ast.parse(PRIVATE.read_text())))
    own = own_names(list(trees.values())) - listed
    found = {str(path.relative_to(PACKAGE)): foreign(tree, own) for path, tree in trees.items()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch._C._get_mkldnn_enabled()", "x = module._parameters", "getattr(node, '_sequence_nr', None)",
        "import sys\nsys._getframe(1)", "from torch.utils._python_dispatch import TorchDispatchMode",
        "from torch.nn.modules.batchnorm import _BatchNorm", "def f(self):\n    return self.tensor._version",
    ],
)  # fmt: skip
def test_planted_names_are_found(source: str) -> None:
    assert foreign(ast.parse(source), {"_own"})
    assert not foreign(ast.parse("self._own = 1\nother._own = self._parameters"), {"_own"})


torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def chains(path: Path) -> set[str]:
    """Names from `torch` on with a private part, as "torch._C._current_graph_task_id"."""
    texts = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    return {text for text in texts if text.startswith("torch.") and "._" in text and "(" not in text}


@pytest.mark.torch
@pytest.mark.parametrize("chain", sorted(chains(PRIVATE)))
def test_this_pytorch_has_the_name(chain: str) -> None:
    if chain.startswith("torch.distributed") and not torch.distributed.is_available():
        pytest.skip("PyTorch is built without distributed")
    assert reduce(getattr, chain.split(".")[1:], torch) is not None


@pytest.mark.torch
def test_tensors_nodes_and_modules_answer() -> None:
    from halfscope.torch import private

    x = torch.ones(2, requires_grad=True)
    before = private.nodes_made()
    y = x * 2
    assert private.node_number(y.grad_fn) == before == private.nodes_made() - 1
    z = torch.zeros(2)
    version = private.version_of(z)
    z.add_(1)
    assert private.version_of(z) == version + 1 and private.storage_key(z[1:]) == private.storage_key(z)
    assert private.sparse_values(z.to_sparse()).tolist() == [1, 1]
    assert private.schema_of(torch.ops.aten.add_.Tensor).arguments[0].name == "self"
    assert private.schema_of(len) is None and private.has_kernel(torch.ops.aten.add.Tensor, "CPU")
    ended, inside = [], []
    y.register_hook(lambda _: inside.append((private.current_node() is not None, private.current_backward_pass())))
    y.register_hook(lambda _: private.at_end_of_backward_pass(lambda: ended.append(True)))
    y.sum().backward()
    assert inside[0][0] and inside[0][1] >= 0 and ended == [True] and private.current_node() is None
    norm = torch.nn.BatchNorm1d(3)
    assert isinstance(norm, private.BATCH_NORM) and set(private.buffers_in(norm)) == set(dict(norm.named_buffers()))
    assert set(private.parameters_in(norm)) == {"weight", "bias"} and not private.is_compiled(norm)
    assert private.is_compiled(torch.compile(norm)) and not private.is_of_fully_shard(norm)
    assert private.has_own_step_hooks(torch.optim.SGD([x], lr=0.1)) and callable(
        getattr(torch.autograd, private.ENGINE)
    )


@pytest.mark.torch
def test_switches_go_back_and_modes_are_passed_by() -> None:
    from halfscope.torch import private

    was = torch.backends.mkldnn.enabled
    undo = private.switch("mkldnn", is_on=not was)
    assert torch.backends.mkldnn.enabled is not was
    undo()
    assert torch.backends.mkldnn.enabled is was
    assert private.autocast_is_on(torch.autocast("cpu")) and not private.autocast_is_on(
        torch.autocast("cpu", enabled=False)
    )
    seen = []

    class Mode(private.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        pause = private.without_dispatch_modes()
        torch.ones(1) + 1
        assert seen == []
        del pause
        torch.ones(1) + 1
    assert len(seen) == 2
    assert torch.func.vmap(lambda x: x + private.is_in_transform())(torch.zeros(2)).tolist() == [1, 1]
    assert not private.is_in_transform()


def _asks(depth: int) -> str:
    from halfscope.torch.private import caller

    return caller(depth).f_code.co_name


@pytest.mark.torch
def test_frames_are_counted_from_who_asks() -> None:
    assert (_asks(0), _asks(1)) == ("_asks", "test_frames_are_counted_from_who_asks")
