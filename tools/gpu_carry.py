"""Carries gpu-check to a machine with a GPU that has neither network nor compiler, and its records back."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import gpu_programs

sys.path.insert(0, str(gpu_programs.ROOT / "lib/python"))
from recording.pack_results import folder_size
from recording.pages import Sources, write_pages
from recording.source_tree import RECORDED

MIB = 1 << 20
# Names that lead out of the folder are refused, where Python can.
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
IMAGES, TEXT = "data/images", "data/text.txt"  # in a pack
# Programs have most of their code in common: a dictionary that holds one whole makes the next a few bytes.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 * MIB}]
DEBIAN_IMAGES = Path("/usr/share/datasets/fashion-mnist")
SPLITS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def data_in(folder: Path) -> tuple[Path | None, Path | None]:
    """Images and text of an unpacked folder, as far as it has them."""
    images, text = folder / IMAGES, folder / TEXT
    return images if images.is_dir() else None, text if text.is_file() else None


def copy_programs(build: Path, names: tuple[str, ...], folder: Path) -> None:
    """Without symbols, by which nothing changes but the size."""
    strip = shutil.which("strip")
    for name, path in gpu_programs.find_programs(build, names).items():
        shutil.copy2(path, folder / name)
        if strip is not None and path.read_bytes()[:4] == b"\x7fELF":
            subprocess.run([strip, folder / name], check=True)


def copy_images(source: Path, folder: Path) -> None:
    """The four files, plain or compressed."""
    folder.mkdir(parents=True)
    for name in SPLITS:
        found = next((path for path in (source / f"{name}.gz", source / name) if path.exists()), None)
        if found is None:
            gpu_programs.stop(f"{source} has neither {name}.gz nor {name}; give --data DIR")
        shutil.copy2(found, folder)


def copy_text(source: Path | None, target: Path) -> None:
    """A given text, or the one that the data set reads: the output of `bible`."""
    if source is not None:
        shutil.copyfile(source, target)
        return
    if shutil.which("bible") is None:
        gpu_programs.stop("there is no text: install Debian's package bible-kjv or give --text FILE")
    done = subprocess.run(["bible", "-f", "ge1:1-re22:21"], capture_output=True, check=True)
    target.write_bytes(done.stdout)


def tree_size() -> int:
    """Bytes of the files of this tree that git has or does not ignore."""
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(words, cwd=gpu_programs.ROOT, capture_output=True, check=True).stdout.split(b"\0")
    files = [gpu_programs.ROOT / name.decode() for name in names if name]
    return sum(path.lstat().st_size for path in files if path.exists())


def pack(file: Path, build: Path, names: tuple[str, ...], images: Path | None, text: Path | None) -> str:
    """Packs programs and data into a file; says what it weighs, and this tree beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_programs(build, names, folder)
        programs = folder_size(folder)
        copy_images(images or DEBIAN_IMAGES, folder / IMAGES)
        copy_text(text, folder / TEXT)
        data = folder_size(folder) - programs
        temporary = file.with_name(file.name + ".new")
        with lzma.open(temporary, "w", filters=FILTERS) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
        temporary.replace(file)
    size, tree = file.stat().st_size, tree_size()
    return (
        f"{file}: {size / MIB:.1f} MiB, of programs of {programs / MIB:.1f} MiB and data of {data / MIB:.1f} MiB; "
        f"with this tree, {tree / MIB:.1f} MiB, {(size + tree) / MIB:.1f} MiB"
    )


def extract(archive: Path, folder: Path) -> None:
    """All that is in it."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, **SAFELY)


def collect(out: Path) -> list[str]:
    """Takes the records in the archives of `out` over into experiments/recorded, and writes the pages anew."""
    taken = []
    for archive in sorted(out.glob("*.tar.gz")):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
            entries = [entry for entry in packed if entry.isfile() and entry.name.startswith("recorded/")]
            for entry in entries:
                entry.name = entry.name.removeprefix("recorded/")
            packed.extractall(folder, entries, **SAFELY)
            for record in sorted(Path(folder).glob("*/*")):
                target = RECORDED / record.parent.name / record.name
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(record, target)
                taken.append(f"{target.parent.name}/{target.name}")
    if taken:
        write_pages(Sources(RECORDED))
    return taken
