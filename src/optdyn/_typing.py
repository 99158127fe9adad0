"""Array annotations used in signatures (shapes are checked by readers, not at run time)."""

from typing import Any, TypeAlias

from jaxtyping import Array, Bool, Float, Int

PyTree: TypeAlias = Any
Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, " n"]
Matrix: TypeAlias = Float[Array, "m n"]

__all__ = ["Array", "Bool", "Float", "Int", "Matrix", "PyTree", "Scalar", "Vector"]
