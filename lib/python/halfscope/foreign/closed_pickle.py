"""Pickles of PyTorch's checkpoints, of which nothing but tensors and descriptions of them is built."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BUILDERS = {
    ("collections", "OrderedDict"),
    ("torch", "Size"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch.serialization", "_get_layout"),
    ("torch.storage", "UntypedStorage"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    *(("torch.distributed.checkpoint.metadata", name) for name in (
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
        "TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    )),
}  # fmt: skip


class Closed:
    """An object of any other class: it takes whatever a pickle does to it, and does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> Closed:
        return Closed()

    def __setstate__(self, _: object) -> None:
        pass

    def __setitem__(self, _: object, __: object) -> None:
        pass

    def append(self, _: object) -> None:
        pass

    def extend(self, _: object) -> None:
        pass


class ClosedUnpickler(pickle.Unpickler):
    """Finds the builders of tensors and their types; any other global is a closed object."""

    def find_class(self, module: str, name: str) -> Any:
        import torch

        is_type = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        is_storage = module == "torch" and name.endswith("Storage") and name.isidentifier()
        return super().find_class(module, name) if is_type or is_storage or (module, name) in BUILDERS else Closed


def load_closed(path: Path) -> Any:
    """The content of a file of torch.save, with closed objects in it; storages stay in the file until they are used."""
    import torch

    machine = SimpleNamespace(
        __name__=__name__, Unpickler=ClosedUnpickler, load=lambda file, **_: ClosedUnpickler(file).load()
    )
    return torch.load(path, map_location="cpu", pickle_module=machine, weights_only=False)
