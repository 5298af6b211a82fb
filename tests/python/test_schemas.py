"""Schemas of the package beside hundreds of generated reports: nothing is told that a schema lacks, and the reverse."""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import halfscope
from halfscope.schemas import NAMES, schema
from json_schema import faults
from recording.source_tree import PROGRAM, ROOT

FORMATS = ["fp16", "bf16", "fp8_e4m3", "mxfp8_e4m3", "mxfp6_e2m3", "nvfp4", "mxfp4/floor", "fp8_1x128"]


def parts(part: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of each key at any depth, by its path: "tensors[].name"."""
    for name, found in part.get("properties", {}).items():
        yield f"{at}.{name}".removeprefix("."), found
        yield from parts(found, f"{at}.{name}")
    if "items" in part:
        yield from parts(part["items"], f"{at}[]")


def strict(part: dict[str, Any]) -> dict[str, Any]:
    """A schema that refuses keys which it does not name."""
    part = {**part, **{key: strict(part[key]) for key in ("items",) if key in part}}
    if "properties" in part:
        part["properties"] = {name: strict(found) for name, found in part["properties"].items()}
        part.setdefault("additionalProperties", False)
    return part


def met(value: Any, at: str = "") -> Iterator[str]:
    """Paths of the keys of a value."""
    for name, part in value.items() if isinstance(value, dict) else ():
        yield f"{at}.{name}".removeprefix(".")
        yield from met(part, f"{at}.{name}")
    for part in value if isinstance(value, list) else ():
        yield from met(part, f"{at}[]")


def arrays(seed: int) -> dict[str, np.ndarray]:
    """Gradients, outliers, numbers that are not finite, FP64 beyond FP32, zeros; or weights beside a norm's gain."""
    rng = np.random.default_rng(seed)
    found = {}
    for layer in range(int(rng.integers(1, 5))):
        shape = tuple(rng.integers(1, 90, rng.integers(1, 4)))
        values = rng.normal(0, 2.0 ** rng.uniform(-30, 18), shape) * 2.0 ** rng.normal(0, rng.choice([0, 4]), shape)
        values.flat[0] = rng.choice([1, 0, np.nan, np.inf, 1e300, values.flat[0]])
        with np.errstate(over="ignore"):
            values = values.astype(rng.choice(["f4", "f8", "f2"]))
        found[f"layer{layer}.weight{rng.choice(['', '.grad'])}"] = values
    if rng.random() < 0.3:
        found["bn.running_var"] = rng.uniform(0.5, 2, 16).astype(np.float32)
    if rng.random() < 0.3:
        outliers = rng.normal(0, 0.1, (64, 64)).astype(np.float32)
        outliers[:, 5] *= 60000
        outliers[3, 7] = 65536
        found["outliers"] = outliers
    return found


def log_of(seed: int) -> str:
    """Lines of a run whose scale falls and grows: Megatron's, key and value, or a table, some of them lost or cut."""
    rng = random.Random(seed)
    kind, scale, lines = rng.choice(["megatron", "pairs", "csv"]), 2.0**16, []
    for step in range(1, rng.randint(3, 40)):
        skipped = rng.random() < 0.2
        norm = rng.choice(["nan", "inf"]) if skipped else f"{rng.uniform(0.1, 5):.3f}"
        lines.append({
            "megatron": f" iteration {step:8}/ 40 | lm loss: 1.0E+01 | loss scale: {scale:.1f} | grad norm: {norm} | "
                        f"number of skipped iterations: {int(skipped)} | number of nan iterations: 0 |",
            "pairs": f"step={step} loss=2.5 loss_scale={scale:g} grad_norm={norm}",
            "csv": f"{step},{scale:g},{norm}",
        }[kind])  # fmt: skip
        scale = scale / 2 if skipped else scale
    kept = [line for line in lines if rng.random() < 0.9] or lines
    if rng.random() < 0.2:
        kept[-1] = kept[-1][: len(kept[-1]) // 2]
    return "\n".join([*(["step,loss_scale,grad_norm"] if kind == "csv" else []), *kept]) + rng.choice(["", "\n"])


def trace_of(seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    steps = []
    for step in range(1, int(rng.integers(2, 30))):
        values = (rng.normal(0, 2.0 ** rng.uniform(-12, 2), 50) * 1024).astype(np.float32)
        gradients = {"finite": bool(rng.random() < 0.9), "max_abs": float(np.abs(values).max())}
        gradients["max_abs"] = gradients["max_abs"] if gradients["finite"] else None
        if seed % 2:
            gradients["histogram"] = halfscope.Histogram(values).record()
        steps.append({"step": step, "scale": 1024.0, "gradients": gradients})
    return steps


def replays(folder: Path) -> Iterator[dict[str, Any]]:
    for seed in range(120):
        path = folder / "train.log"
        path.write_text(log_of(seed))
        yield halfscope.replay(path, ["dynamic", "deepspeed", 64] if seed % 3 else ()).to_dict()
    for seed in range(30):
        yield halfscope.replay(trace_of(seed), ["dynamic", "megatron"]).to_dict()


def program(*words: object) -> dict[str, Any]:
    done = subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def quantized(path: Path, rng: np.random.Generator) -> Path:
    """A weight in E4M3 with a scale per block of 128 x 128, one of them 0 or NaN at times."""
    codes = rng.integers(0, 120, (128, 256), dtype=np.uint8)
    scales = rng.uniform(0.001, 0.01, (1, 2)).astype("<f4")
    scales[0, 1] = rng.choice([0, np.nan, scales[0, 1]])
    data = codes.tobytes() + scales.tobytes()
    end, size = codes.nbytes, len(data)
    header = {"fc.weight": {"dtype": "F8_E4M3", "shape": [128, 256], "data_offsets": [0, end]},
              "fc.weight_scale_inv": {"dtype": "F32", "shape": [1, 2], "data_offsets": [end, size]}}  # fmt: skip
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def from_files(folder: Path, command: str) -> Iterator[dict[str, Any]]:
    """The program's own output: files that are not read, tensors of text, groups, references, ranks."""
    (folder / "some").mkdir()
    (folder / "some/other.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    for seed in range(12):
        rng, found = np.random.default_rng(seed), arrays(seed)
        np.savez(folder / "one.npz", **found, step=np.array(["text"]))
        np.savez(folder / "some/one.npz", **found)
        np.savez(folder / "two.npz", **{name: 1.01 * values for name, values in found.items()})
        if command == "updates":
            yield program("updates", folder / "two.npz", "--weights", folder / "one.npz")
            continue
        yield program(command, folder / "one.npz", *([folder / "some"] if seed % 2 else []), "--top", seed % 3 + 1)
        if command == "analyze":
            yield program("analyze", folder / "one.npz", "--against", folder / "two.npz")
            yield program("analyze", folder / "one.npz", folder / "two.npz", "--group", "{**}", "--ranks", 8)
            yield program("analyze", quantized(folder / "fp8.safetensors", rng))


def reports(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    if name == "analyze":
        for seed in range(200):
            yield halfscope.analyze(arrays(seed), format=FORMATS[seed % 3]).to_dict()
    elif name == "formats":
        for seed in range(100):
            axis = -1 if seed % 2 else 0
            yield halfscope.compare_formats(arrays(seed), FORMATS[seed % 4 :: 2], max_error=0.05, axis=axis).to_dict()
    elif name == "replay":
        yield from replays(folder)
    else:
        assert name == "updates"
    if name != "replay":
        yield from from_files(folder, name)


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "report"])
def test_what_is_told_is_what_the_schema_names(name: str, tmp_path: Path) -> None:
    own, told, keys = strict(schema(name)), 0, set()
    for value in reports(name, tmp_path):
        assert list(faults(json.loads(json.dumps(value)), own)) == []
        keys |= set(met(value))
        told += 1
    assert told >= 12
    assert {at for at, _ in parts(own)} - keys == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_says_what_each_key_means(name: str) -> None:
    own = schema(name)
    jsonschema.Draft202012Validator.check_schema(own)
    silent = [at for at, part in parts(own) if not part.get("description", "").strip()]
    assert silent == [] and len(dict(parts(own))) >= 6
    assert set(own["required"]) <= own["properties"].keys()


@pytest.mark.parametrize("seed", range(60))
def test_a_breach_is_seen(seed: int) -> None:
    """A key that is left out, or of another type."""
    rng = random.Random(seed)
    right = halfscope.analyze(arrays(seed)).to_dict()
    wrong = copy.deepcopy(right)
    target = rng.choice([wrong, *wrong["tensors"]])
    key = rng.choice([name for name in target if name not in ("weights", "file", "blocks")])
    if rng.random() < 0.5:
        del target[key]
    else:
        target[key] = {"not": "this"}
    assert list(faults(right, schema("analyze"))) == [] and len(list(faults(wrong, schema("analyze")))) == 1


def reporting(trees: list[ast.Module]) -> set[str]:
    """Report, and the classes that are derived from it."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {"Report"}
    for _ in range(3):
        found |= {node.name for node in classes if found & {ast.unparse(base) for base in node.bases}}
    return found


def kinds(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """First words of calls of these classes, and the defaults of their `kind`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names and node.args:
            yield from (each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant))
        if isinstance(node, ast.ClassDef) and node.name in names:
            values = [line.value for line in node.body if isinstance(line, ast.AnnAssign) and line.value]
            targets = [ast.unparse(line.target) for line in node.body if isinstance(line, ast.AnnAssign) and line.value]
            yield from (ast.literal_eval(value) for name, value in zip(targets, values) if name == "kind")


def test_the_schema_of_reports_names_every_kind() -> None:
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "lib/python/halfscope").rglob("*.py"))]
    names = reporting(trees)
    assert {"Report", "CheckReport", "Lint"} <= names
    found = {kind for tree in trees for kind in kinds(tree, names)}
    assert found == set(schema("report")["properties"]["report"]["enum"])


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^schema: no schema is called 'calc'; one of report, analyze, "):
        schema("calc")
