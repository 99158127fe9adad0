"""Colours that colour-blind readers can tell apart, for every kind of picture."""

# The palette of Okabe and Ito without its yellow, which is too pale on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
LIMIT = "#B22222"
GOAL = "#2E7D32"
INK = "#222222"
FAINT = "#9A9A9A"
GRID = "#E6E6E6"


def rgb(color: str) -> tuple[int, int, int]:
    """A colour "#rrggbb" as three numbers from 0 to 255."""
    text = color.removeprefix("#")
    if len(text) != 6:
        raise ValueError(f"a colour is written as '#rrggbb', got {color!r}")
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)
