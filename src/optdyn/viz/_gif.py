"""Real-time animation as a GIF."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from optdyn.viz._motion import Motion, record_motion
from optdyn.viz._palette import COLORS, INK
from optdyn.viz._shapes import add_shape, add_trail
from optdyn.viz._style import new_figure, style_scene

# Viewers slow down GIFs with frames below 0.02 s; more than 25 frames a second only make the file larger.
_FRAME_S = 0.04
_LAST_FRAME_S = 1.2
_TRAIL_S = 1.5
_PIXELS = 520
_PALETTE = 96
_NEARLY_WHITE = 248


def write_gif(scenario: Any, plan: Any, path: Path) -> None:
    """Write the motion of a plan; it plays in real time, pauses at the end and starts again."""
    motion = record_motion(scenario, plan)
    chosen = frame_indices(motion.times)
    pictures = _render(motion, chosen)
    palette = _shared_palette(pictures)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    frames[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=frame_durations(motion.times[chosen]),
        loop=0,
        optimize=False,
    )


def frame_indices(times: np.ndarray) -> np.ndarray:
    """Indices of the states to show: every k-th one, at most 25 for each second, and always the last."""
    last = times.size - 1
    step = (times[-1] - times[0]) / max(last, 1)
    stride = max(1, int(np.ceil(_FRAME_S / step - 1e-6))) if step > 0 else 1
    return np.unique(np.append(np.arange(0, last + 1, stride), last))


def frame_durations(times: np.ndarray) -> list[int]:
    """Milliseconds that each frame stays.

    GIF counts in hundredths of a second. Rounding the instants and not the differences keeps the total right.
    """
    instants = np.round(100 * (times - times[0])).astype(int)
    durations = np.maximum(np.diff(instants), 2)
    return [10 * int(value) for value in durations] + [int(1000 * _LAST_FRAME_S)]


def _shared_palette(pictures: list[Image.Image]) -> Image.Image:
    """One palette for all frames, made from three of them; frames with palettes of their own flicker."""
    chosen = [np.asarray(pictures[i]) for i in (0, len(pictures) // 2, -1)]
    palette = Image.fromarray(np.concatenate(chosen, axis=1)).quantize(
        _PALETTE, method=Image.Quantize.MEDIANCUT
    )
    colors = np.asarray(palette.getpalette(), dtype=np.uint8).reshape(-1, 3).copy()
    colors[np.all(colors >= _NEARLY_WHITE, axis=1)] = 255  # averaging has greyed the background
    palette.putpalette(colors.ravel().tolist())
    return palette


def _render(motion: Motion, chosen: np.ndarray) -> list[Image.Image]:
    """Draw the background once, and for each frame only what moves on top of a copy of it."""
    dpi = 100
    width = _PIXELS / dpi
    height = float(np.clip(width / motion.aspect, 0.3 * width, 1.4 * width)) + 0.4
    figure = new_figure(width, height, dpi=dpi, constrained=False)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.02, 0.96, 1.0 - 0.42 / height))
    style_scene(axes, motion.extent, ticks=False)
    figure.text(0.02, 1.0 - 0.27 / height, motion.title, fontsize=11, color=INK)
    for shape in motion.standing:
        add_shape(axes, shape, zorder=1.0)
    clock = figure.text(0.98, 1.0 - 0.27 / height, "", fontsize=11, color=INK, ha="right", family="monospace")
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)

    pictures = []
    for i in chosen:
        canvas.restore_region(background)
        artists = [_add_trail(axes, motion, int(i))]
        artists += [add_shape(axes, shape, zorder=3.0) for shape in motion.moving(int(i))]
        clock.set_text(f"{motion.times[i]:5.2f} s")
        for artist in artists:
            if artist is not None:
                axes.draw_artist(artist)
                artist.remove()
        figure.draw_artist(clock)
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    return pictures


def _add_trail(axes: Any, motion: Motion, frame: int) -> Any:
    """The path of the tip during the last moments, fading into the past."""
    first = int(np.searchsorted(motion.times, motion.times[frame] - _TRAIL_S))
    if first >= frame:
        return None
    age = (motion.times[frame] - motion.times[first:frame]) / _TRAIL_S
    colors = _fade(COLORS[0], np.clip(age, 0.0, 1.0))
    return add_trail(axes, motion.tip[first : frame + 1], colors, width=2.0)


def _fade(color: str, age: np.ndarray) -> list[tuple[float, ...]]:
    """The colour mixed with white; mixing and not transparency keeps the palette small."""
    from matplotlib.colors import to_rgb

    base = np.asarray(to_rgb(color))
    return [tuple(base + (1.0 - base) * 0.9 * weight) for weight in age]
