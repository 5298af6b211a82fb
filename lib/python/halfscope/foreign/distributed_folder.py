"""Folders that torch.distributed.checkpoint saves: tensors are put together from their `.distcp` shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from halfscope.foreign.closed_pickle import ClosedUnpickler

METADATA = ".metadata"
SUFFIX = ".distcp"


def is_of(path: Path) -> bool:
    """A folder, or one of its shards."""
    return _folder(path) is not None


def _folder(path: Path) -> Path | None:
    if path.is_file() and path.suffix == SUFFIX:
        path = path.parent
    return path if path.is_dir() and (path / METADATA).is_file() else None


def read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    import torch
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.metadata import StorageMeta, TensorStorageMetadata

    class Reader(checkpoint.FileSystemReader):
        """The metadata is a pickle: only descriptions of tensors are built."""

        def read_metadata(self, *_: Any, **__: Any) -> Any:
            with (folder / METADATA).open("rb") as file:
                metadata = ClosedUnpickler(file).load()
            if getattr(metadata, "storage_meta", None) is None:
                metadata.storage_meta = StorageMeta()
            metadata.storage_meta.load_id = self.load_id
            return metadata

    folder = _folder(path) or path
    reader = Reader(str(folder))
    entries = reader.read_metadata().state_dict_metadata
    described = {name: entry for name, entry in entries.items() if isinstance(entry, TensorStorageMetadata)}
    floats = {name: entry for name, entry in described.items() if entry.properties.dtype.is_floating_point}
    tensors = {name: torch.empty(entry.size, dtype=entry.properties.dtype) for name, entry in floats.items()}
    if tensors:
        checkpoint.load(tensors, storage_reader=reader, no_dist=True)
    others = {name: f"dtype {described[name].properties.dtype}" for name in described if name not in floats}
    return tensors, {**others, **{name: "no tensor" for name in entries if name not in described}}
