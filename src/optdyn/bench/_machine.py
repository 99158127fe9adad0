"""What the numbers were measured on."""

import os
import platform
from pathlib import Path

import jax

from optdyn._versions import installed_version

_PACKAGES = ("optdyn", "jax", "jaxlib", "equinox", "numpy", "mujoco", "casadi")


def machine() -> dict[str, object]:
    """Processor, cores, system, and versions of the packages that are installed."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "backend": jax.default_backend(),
        **{name: found for name in _PACKAGES if (found := installed_version(name)) is not None},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
