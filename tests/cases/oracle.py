"""Independent recomputation in NumPy of what a successful solve claims."""

from typing import Any

import numpy as np

from cases.checking import as_array

# Residuals are allowed this much, plus rounding of their own terms (multiples of the machine epsilon).
TOL = {np.dtype("float64"): 1e-8, np.dtype("float32"): 1e-4}
_ROUNDING = 256


def conic(data: dict[str, Any], solution: Any) -> None:
    """Optimality of `min 1/2 x'Px + q'x, Ax = b, h - Gx >= 0, h_k - G_k x in SOC` at a returned solution."""
    dtype = np.dtype(solution.primal.dtype)
    tol = TOL[dtype]

    def small(name: str, residual: Any, terms: tuple[Any, ...], tol: float) -> None:
        _small(name, residual, terms, tol, np.finfo(dtype).eps)

    P, q, A, b, G, h = (as_array(data[name]) for name in "PqAbGh")
    x, y = as_array(solution.primal), as_array(solution.equality_dual)
    z, s = as_array(solution.cone_dual), as_array(solution.slack)
    present = np.isfinite(h)
    soc = [(as_array(block["G"]), as_array(block["h"])) for block in data["soc"]]
    G_all = np.concatenate([np.where(present[:, None], G, 0), *(block for block, _ in soc)])
    P = (P + P.T) / 2
    small(
        "stationarity",
        P @ x + q + A.T @ y + G_all.T @ z,
        (np.abs(P) @ np.abs(x), q, np.abs(A.T) @ np.abs(y)),
        tol,
    )
    small("equality", A @ x - b, (np.abs(A) @ np.abs(x), b), tol)
    rows = len(h)
    slack = h[present] - G[present] @ x
    sizes = (np.abs(G[present]) @ np.abs(x), h[present])
    small("inequality", np.minimum(slack, 0), sizes, tol)
    small("sign of the dual", np.minimum(z[:rows], 0), (), tol)
    small(
        "complementarity", (s * z)[:rows][present], (s[:rows][present] * z[:rows][present],), max(tol, 1e-5)
    )
    for block, offset in soc:
        value, dual = offset - block @ x, z[rows : rows + len(offset)]
        rows += len(offset)
        if len(offset):
            sizes = (np.abs(block) @ np.abs(x), offset)
            small("second-order cone", min(value[0] - np.linalg.norm(value[1:]), 0), sizes, tol)
            small("second-order cone of the dual", min(dual[0] - np.linalg.norm(dual[1:]), 0), (dual,), tol)
            small("complementarity of a cone", value @ dual, (value, dual), max(tol, 1e-5))


def complementary(z: Any, s: Any, tol: float) -> None:
    """z >= 0, s >= 0, s'z = 0."""
    z, s = as_array(z), as_array(s)
    _small("sign of z", np.minimum(z, 0), (), tol)
    _small("sign of s", np.minimum(s, 0), (), tol)
    _small("complementarity", s * z, (), tol)


def small(name: str, residual: Any, tol: float) -> None:
    """|residual| within `tol`."""
    _small(name, residual, (), tol)


def _small(
    name: str, residual: Any, terms: tuple[Any, ...], tol: float, eps: float = np.finfo(float).eps
) -> None:
    """|residual| within `tol`, or within the rounding of its terms."""
    worst = float(np.max(np.abs(as_array(residual)), initial=0.0))
    size = sum(float(np.max(np.abs(as_array(term)), initial=0.0)) for term in terms)
    assert worst <= tol + _ROUNDING * eps * size, (
        f"{name} recomputed: {worst:.3g}, although the solve claims success"
    )


def numerical_gradient(fn: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences, rows by entry of `fn`."""
    columns = []
    for i in range(x.size):
        shift = np.zeros_like(x)
        shift[i] = step * max(1.0, abs(x[i]))
        columns.append((as_array(fn(x + shift)) - as_array(fn(x - shift))) / (2 * shift[i]))
    return np.stack(columns, axis=-1)
