"""The experiments in a results folder, by the names of its files alone."""

from __future__ import annotations

from pathlib import Path


def experiment_folders(folder: Path) -> list[Path]:
    """Folders of the experiments in a results folder, by name. Raises ValueError where there is none."""
    if (folder / "summary.json").exists():
        return [folder]
    found = [path.parent for path in sorted(folder.glob("*/summary.json"))]
    if not found:
        raise ValueError(f"{folder}: no results here; expected EXPERIMENT/summary.json, as 'halfscope run' writes it")
    return found
