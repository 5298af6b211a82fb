"""Which CUDA device there is, asked of the driver itself: no toolkit and no package is needed."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


class NoDevice(Exception):
    """Why there is no CUDA device, in one line."""


@dataclass
class CudaDevice:
    name: str
    capability: str  # "9.0"
    driver: str  # "580.159.04", where the system tells, else ""
    driver_cuda: str  # the newest CUDA that the driver knows, "13.0"
    devices: int

    def as_json(self) -> dict:
        return asdict(self)


def find_device() -> CudaDevice:
    """The first device. Raises NoDevice."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as problem:
        raise NoDevice("there is no NVIDIA driver (libcuda.so.1)") from problem
    if status := cuda.cuInit(0):
        raise NoDevice(f"the NVIDIA driver does not start (cuInit gives {status})")
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        raise NoDevice("the NVIDIA driver sees no device")
    device, version = ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, 256, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    numbers = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        number = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        numbers.append(str(number.value))
    cuda_version = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return CudaDevice(name.value.decode(), ".".join(numbers), driver_version(), cuda_version, count.value)


def driver_version() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return match.group(1) if match else ""


def library_folders() -> list[str]:
    """Where CUDA's own libraries may lie: beside nvcc, in the usual places, in Python's packages."""
    folders = [os.environ[name] + "/lib64" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    if nvcc := shutil.which("nvcc"):
        folders.append(str(Path(nvcc).resolve().parents[1] / "lib64"))
    folders += sorted(glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/targets/x86_64-linux/lib"))
    for path in sys.path:
        folders += sorted(glob.glob(f"{path}/nvidia/*/lib"))
    return [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]


def find_program(name: str) -> str | None:
    """A program of the toolkit: on the path, or where the toolkit usually lies."""
    places = [shutil.which(name), *sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"))]
    return next((place for place in places if place), None)
