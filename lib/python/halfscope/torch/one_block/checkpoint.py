"""One module of a checkpoint of transformers: the whole model on the device meta, and this module's tensors alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from halfscope.torch.private import compute_buffers, set_attention, tied_weight
from halfscope.torch.words import unknown_name

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass
class Checkpoint:
    """A folder that `save_pretrained` wrote: config.json, and weights in one or several files of safetensors."""

    folder: Path
    shards: dict[str, Path] = field(init=False)  # by tensor

    def __post_init__(self) -> None:
        """Raises ValueError, naming the file, where the folder holds no such checkpoint."""
        if not (self.folder / "config.json").is_file():
            raise ValueError(f"{self.folder}: no config.json; give a folder that model.save_pretrained wrote")
        self.shards = dict(self._find_shards())

    def _find_shards(self) -> Iterator[tuple[str, Path]]:
        if (self.folder / _INDEX).is_file():
            try:
                index = json.loads((self.folder / _INDEX).read_text())["weight_map"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{self.folder / _INDEX}: is no index of shards") from None
            yield from ((name, self.folder / shard) for name, shard in index.items())
        elif (self.folder / _ONE).is_file():
            with _opened(self.folder / _ONE) as file:
                yield from dict.fromkeys(file.keys(), self.folder / _ONE).items()
        else:
            raise ValueError(f"{self.folder}: no {_ONE} and no {_INDEX}; model.save_pretrained writes them")

    def module(self, name: str, attention: str = "") -> torch.nn.Module:
        """A module in FP32 with the checkpoint's tensors, in the mode in which a model is made.

        attention: the implementation by which the run computed it; empty for the library's choice.
        """
        model = self._on_meta(attention)
        try:
            block = model.get_submodule(name)
        except AttributeError:
            names = [each for each, _ in model.named_modules()]
            raise ValueError(f"{self.folder}: {unknown_name(name, names)}") from None
        block.to_empty(device="cpu")
        _fill_computed_buffers(model, block, name)
        wanted = block.state_dict(keep_vars=True)
        stored = {f"{name}.{key}" if name else key: tensor for key, tensor in wanted.items()}
        self._load(stored, model)
        return block.float()

    def _on_meta(self, attention: str) -> Any:
        transformers = _transformers()
        try:
            config = transformers.AutoConfig.from_pretrained(self.folder)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ValueError(f"{self.folder / 'config.json'}: {str(error).splitlines()[0]}") from None
        if getattr(config, "quantization_config", None) is not None:
            raise ValueError(f"{self.folder}: its weights are quantized; give the checkpoint that they were made of")
        named = getattr(config, "architectures", None) or [""]
        kind = getattr(transformers, named[0], None)
        if kind is None:
            raise ValueError(f"{self.folder}: transformers {transformers.__version__} has no model '{named[0]}'")
        if attention and not attention.startswith("flash"):
            set_attention(config, attention)
        with torch.device("meta"):
            return kind(config)

    def _load(self, wanted: dict[str, torch.Tensor], model: Any) -> None:
        """Fills tensors in place, shard after shard."""
        by_shard: dict[Path, list[tuple[str, str]]] = {}
        for name in wanted:
            stored = self._stored_name(name, model)
            by_shard.setdefault(self.shards[stored], []).append((name, stored))
        for shard, names in by_shard.items():
            if not shard.is_file():
                raise ValueError(f"{shard}: this shard is missing, and has '{names[0][1]}'; copy it to the others")
            with _opened(shard) as file:
                for name, stored in names:
                    _fill(wanted[name], _tensor(file, stored, shard), f"{shard}: '{stored}'")

    def _stored_name(self, name: str, model: Any) -> str:
        """Name in the files, where a model with a head and one without differ by a prefix, and tied weights are one."""
        prefix = f"{getattr(model, 'base_model_prefix', '')}."
        for each in filter(None, (name, tied_weight(model, name))):
            for found in (each, each.removeprefix(prefix), f"{prefix}{each}"):
                if found in self.shards:
                    return found
        near = get_close_matches(name, self.shards, n=1, cutoff=0.5)
        raise ValueError(
            f"{self.folder}: holds no tensor '{name}', which its config.json asks for"
            + (f"; near it: {near[0]}" if near else "")
        )


def _transformers() -> Any:
    try:
        import safetensors.torch  # noqa: F401  comes with transformers
        import transformers
    except ImportError:
        raise ImportError("load_block builds a module of transformers: pip install transformers") from None
    return transformers


def _opened(path: Path) -> Any:
    import safetensors

    try:
        return safetensors.safe_open(path, framework="pt")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path}: is no whole file of safetensors ({error}); copy it again") from None


def _tensor(file: Any, name: str, path: Path) -> torch.Tensor:
    import safetensors

    try:
        tensor: torch.Tensor = file.get_tensor(name)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: {error}; its index says that it holds '{name}'") from None
    return tensor


def _fill(target: torch.Tensor, stored: torch.Tensor, what: str) -> None:
    if target.shape != stored.shape:
        raise ValueError(f"{what} is {tuple(stored.shape)}, and config.json makes it {tuple(target.shape)}")
    with torch.no_grad():
        target.copy_(stored)


def _fill_computed_buffers(model: Any, block: torch.nn.Module, name: str) -> None:
    """Buffers that no checkpoint holds are computed by the library as when it loads a model.

    Raises ValueError where it does not.
    """
    saved = block.state_dict()
    computed = {key: buffer for key, buffer in block.named_buffers() if key not in saved}
    for buffer in computed.values():
        buffer.fill_(torch.nan if buffer.is_floating_point() else 0)
    for key, module in block.named_modules():
        if any(each.rpartition(".")[0] == key for each in computed):
            compute_buffers(model, module)
    left = [key for key, buffer in computed.items() if buffer.is_floating_point() and bool(buffer.isnan().any())]
    if left:
        raise ValueError(f"{name}: buffer '{left[0]}' is in no file, and this version of transformers leaves it empty")
