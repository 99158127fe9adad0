"""Pictures of a solved scenario. matplotlib, Pillow and viser (extra `viz`) are imported only to draw one."""

from optdyn.viz._api import ANIMATION_EXTENSIONS, PLOT_EXTENSIONS, animate, missing_packages, plot, view

__all__ = ["ANIMATION_EXTENSIONS", "PLOT_EXTENSIONS", "animate", "missing_packages", "plot", "view"]
