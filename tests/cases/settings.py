"""Solver settings, as a user would choose them for the accuracy that the bank asks for."""

import jax.numpy as jnp

import optdyn as od

# Distance from the solution in units of the objective. The equations of a derivative are worse conditioned
# the closer the point is: 1e-9 leaves about seven digits.
CENTRAL_PATH = 1e-10
CENTRAL_PATH_DERIVATIVE = 1e-9
AT_SOLUTION = od.ImplicitAdjoint(smoothing=None)


def solver(dtype=jnp.float64, central_path: float = CENTRAL_PATH, **settings) -> od.InteriorPoint:
    """Tight in double precision, the library's defaults in single."""
    if jnp.finfo(dtype).bits < 64:
        return od.InteriorPoint(max_steps=100)
    return od.InteriorPoint(central_path=central_path, max_steps=100, **settings)
