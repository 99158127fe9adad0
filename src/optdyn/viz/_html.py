"""Animation as one self-contained page: the shapes as JSON, and a small player that draws them."""

import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from optdyn.viz._motion import Motion, finite_shape, record_motion

# Coordinates are rounded to this fraction of the extent: finer than a pixel of a large screen.
_RESOLUTION = 1e-4


def write_html(scenario: Any, plan: Any, path: Path) -> None:
    """Write the motion of a plan as a page that needs no network and no other file."""
    motion = record_motion(scenario, plan)
    template = resources.files("optdyn.viz").joinpath("player.html").read_text(encoding="utf-8")
    data = json.dumps(player_data(motion, getattr(scenario, "description", "")), separators=(",", ":"))
    # Inside a script element "<" could end the script; as an escape it cannot, and it stays the same JSON.
    page = template.replace("/*DATA*/null", data.replace("<", "\\u003c"))
    path.write_text(page, encoding="utf-8")


def player_data(motion: Motion, description: str = "") -> dict[str, Any]:
    """What the player needs. Shapes that cannot be drawn are left out of their frame."""
    xmin, xmax, ymin, ymax = motion.extent
    digits = max(0, -math.floor(math.log10(_RESOLUTION * max(xmax - xmin, ymax - ymin))))
    return {
        "title": motion.title,
        "description": description,
        "extent": list(motion.extent),
        "times": [round(float(time), 6) for time in motion.times],
        "standing": [_shape(shape, digits) for shape in motion.standing if finite_shape(shape)],
        "frames": [
            [_shape(shape, digits) for shape in motion.moving(i) if finite_shape(shape)]
            for i in range(len(motion.frames))
        ],
        "tip": [_point(point, digits) for point in motion.tip],
    }


def _shape(shape: Any, digits: int) -> dict[str, Any]:
    points = np.round(np.asarray(shape.points, dtype=float), digits)
    return {
        "k": shape.kind,
        "p": points.ravel().tolist(),
        "r": round(float(shape.radius), digits),
        "c": shape.color,
        "w": float(shape.width),
    }


def _point(point: np.ndarray, digits: int) -> list[float] | None:
    return np.round(point, digits).tolist() if np.isfinite(point).all() else None
