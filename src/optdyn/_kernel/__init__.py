"""One CPU kernel for a computation on small arrays; see `_primitive`."""

from optdyn._kernel._primitive import map_in_kernel, single_kernel

__all__ = ["map_in_kernel", "single_kernel"]
