"""The step that the walker is asked for, and torques that nearly do it: plain geometry and inverse dynamics.

The hip moves as an inverted pendulum of constant height over the standing foot while the other swings (Kajita
et al., 'The 3D linear inverted pendulum mode', 2001), and as a cubic from and to rest while both feet stand.
"""

from dataclasses import dataclass

import numpy as np

from optdyn.systems._walker_model import (
    CENTERS,
    DAMPING,
    FEET,
    GRAVITY,
    INERTIA,
    INPUTS,
    LINK,
    MASS,
    STEP,
)


@dataclass(frozen=True)
class Gait:
    """A step of foot b past foot a, which stands at x = 0.

    `stride` is the distance between the feet before and after in m, `hip` the height of the hip in m, `lift`
    that of the swinging foot, `reach` the distance of the hip from the standing foot in m where the other one
    leaves the ground; `phases` are steps of time on both feet, on foot a, and on both again.
    """

    stride: float = 0.35
    hip: float = 0.72
    lift: float = 0.06
    reach: float = 0.08
    phases: tuple[int, int, int] = (13, 16, 13)

    @property
    def horizon(self) -> int:
        """Steps of time."""
        return sum(self.phases)

    @property
    def single_support(self) -> np.ndarray:
        """Whether foot b is in the air at the end of a step [N]."""
        first, swing, _ = self.phases
        steps = np.arange(1, self.horizon + 1)
        return (steps > first) & (steps < first + swing)

    def configurations(self) -> np.ndarray:
        """Postures of the step [N + 1, 7]."""
        first, swing, last = self.phases
        steps = np.arange(self.horizon + 1) - first
        phase = np.clip(steps / swing, 0, 1)
        moved = phase**3 * (10 - 15 * phase + 6 * phase**2)
        rate = np.sqrt(GRAVITY / self.hip)
        half = STEP * swing / 2
        # The pendulum passes over the foot in the middle of the swing.
        scale = self.reach / np.sinh(rate * half)
        speed = scale * rate * np.cosh(rate * half)
        hip = np.where(
            steps < 0,
            -self._brake(-steps, first, speed),
            np.where(
                steps > swing,
                self._brake(steps - swing, last, speed),
                scale * np.sinh(rate * (STEP * steps - half)),
            ),
        )
        foot = np.stack([self.stride * (2 * moved - 1), self.lift * np.sin(np.pi * moved) ** 2], axis=1)
        return np.array([posture((x, self.hip), (0.0, 0.0), b) for x, b in zip(hip, foot, strict=True)])

    def _brake(self, steps: np.ndarray, count: int, speed: float) -> np.ndarray:
        """Way of the hip from `reach` at `speed` to rest half a stride from the standing foot."""
        s, way = np.clip(steps / count, 0, 1), self.stride / 2 - self.reach
        run = speed * STEP * count
        return self.reach + run * s + (3 * way - 2 * run) * s**2 + (run - 2 * way) * s**3


def posture(hip, foot_a, foot_b, torso: float = 0.0) -> np.ndarray:
    """Configuration with given places (x, z) of hip and feet in m, by inverse kinematics [7]."""
    angles = [torso]
    for foot in (foot_a, foot_b):
        x, z = np.subtract(foot, hip)
        leg, bend = np.arctan2(x, -z), np.arccos(np.hypot(x, z) / (2 * LINK))
        angles += [leg + bend, leg - bend]
    return np.array([*hip, *angles])


def feedforward(configurations: np.ndarray, single_support: np.ndarray) -> np.ndarray:
    """Torques in N m that move the walker along configurations [N + 1, 7], by inverse dynamics [N, 4].

    Without the terms of changing inertia; where both feet stand, the smallest torques and forces that do it.
    """
    before, here, after = configurations[:-2], configurations[1:-1], configurations[2:]
    velocity, acceleration = (after - before) / (2 * STEP), (after - 2 * here + before) / STEP**2
    torques = []
    for q, v, a, single in zip(here, velocity, acceleration, single_support[:-1], strict=True):
        x, z = _jacobians(q, CENTERS)
        inertia = (x.T * MASS) @ x + (z.T * MASS) @ z + np.diag([0.0, 0.0, *INERTIA])
        needed = inertia @ a + GRAVITY * MASS @ z + DAMPING * INPUTS @ (INPUTS.T @ v)
        feet = np.vstack(_jacobians(q, FEET[:1] if single else FEET)).T
        # A newton of force counts like a third of a newton metre of torque.
        columns = np.hstack([INPUTS, 3.0 * feet])
        torques.append(np.linalg.lstsq(columns, needed, rcond=None)[0][: INPUTS.shape[1]])
    return np.array([*torques, torques[-1]])


def _jacobians(q: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocities of points in x and in z per unit of velocity [k, 7]."""
    x, z = np.tile([1.0, 0.0], (len(weights), 1)), np.tile([0.0, 1.0], (len(weights), 1))
    return np.hstack([x, weights * np.cos(q[2:])]), np.hstack([z, weights * np.sin(q[2:])])
