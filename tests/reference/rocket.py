"""The rocket in plain NumPy: equations of motion by quaternions, the midpoint rule, the projected thrust."""

import numpy as np
from scipy.spatial.transform import Rotation

INERTIA, GRAVITY, LENGTH, CAP = np.array([1 / 12, 1 / 12, 1e-5]), 9.81, 1.0, 12.5


def rates(x, thrust):
    """Time derivative of the state; the attitude's by the chain rule through the unit quaternion."""
    r, v, w = x[3:6], x[6:9], x[9:12]
    square = r @ r
    scalar, vector = (1 - square) / (1 + square), 2 * r / (1 + square)
    scalar_dot, vector_dot = -w @ vector / 2, (scalar * w + np.cross(vector, w)) / 2
    r_dot = vector_dot / (1 + scalar) - vector * scalar_dot / (1 + scalar) ** 2
    v_dot = Rotation.from_mrp(r).apply(np.array(thrust)) - np.array([0.0, 0.0, GRAVITY])
    torque = np.cross([0.0, 0.0, -LENGTH], thrust)
    w_dot = (torque - np.cross(w, INERTIA * w)) / INERTIA
    return np.concatenate([v, r_dot, v_dot, w_dot])


def midpoint_residual(x, thrust, x_next, h):
    """Rows of the step, in the units of the state."""
    return x_next - x - h * rates((x + x_next) / 2, thrust)


def thrust_of(x, x_next, h):
    """The thrust that explains the change of velocity of a step."""
    force = (x_next[6:9] - x[6:9]) / h + np.array([0.0, 0.0, GRAVITY])
    return Rotation.from_mrp((x + x_next)[3:6] / 2).inv().apply(force)


def limits(thrust):
    """How far the thrust is outside of the cone and the cap (not positive: inside)."""
    return max(np.linalg.norm(thrust[:2]) - thrust[2], thrust[2] - CAP)


def project(request):
    """Nearest point of the cone with a cap, by cases."""
    side, axial = np.linalg.norm(request[:2]), request[2]
    direction = request[:2] / side if side > 0 else np.zeros(2)
    if side <= axial <= CAP:
        return np.array(request)
    on_cone = np.clip((side + axial) / 2, 0.0, CAP)
    if axial >= CAP:
        return np.append(min(side, CAP) * direction, CAP)
    return np.append(on_cone * direction, on_cone)
