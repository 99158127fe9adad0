"""Unit quaternions (w, x, y, z) as NumPy arrays."""

import numpy as np


def about_z(angle: np.ndarray) -> np.ndarray:
    """Turns [..., 4] about the z axis by angles [...] in rad."""
    half, zero = np.asarray(angle) / 2, np.zeros_like(angle)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], axis=-1)


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """First q, then p; [..., 4]."""
    pw, pv, qw, qv = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    w = pw * qw - np.sum(pv * qv, axis=-1, keepdims=True)
    return np.concatenate([w, pw * qv + qw * pv + np.cross(pv, qv)], axis=-1)


def rotate(q: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors [..., 3] turned by q [4]."""
    w, v = q[0], q[1:]
    once = np.cross(v, vectors)
    return vectors + 2 * w * once + 2 * np.cross(v, once)
