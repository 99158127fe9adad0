"""Convex cones as algebra: Jordan product, distance to the boundary, violation, Nesterov-Todd scaling."""

from optdyn.cones._base import AbstractCone
from optdyn.cones._orthant import NonnegativeOrthant
from optdyn.cones._product import ProductCone
from optdyn.cones._second_order import SecondOrderCone

__all__ = ["AbstractCone", "NonnegativeOrthant", "ProductCone", "SecondOrderCone"]
